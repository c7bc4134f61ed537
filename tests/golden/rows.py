"""The golden table: fixed data, settings and seeds, each row naming every setting it rests on."""

from golden import classifiers, defaults, searches, surveys, updates, wrappers
from golden.record import Rows

ROWS: Rows = {
    **updates.ROWS,
    **wrappers.ROWS,
    **surveys.ROWS,
    **searches.ROWS,
    **classifiers.ROWS,
    **defaults.ROWS,
}
