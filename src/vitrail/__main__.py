"""`python -m vitrail` is the command `vitrail`."""

from vitrail.cli import main

if __name__ == "__main__":
    main()
