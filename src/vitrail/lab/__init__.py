"""What measures and reproduces: experiments, comparisons, timings, drawings, the demo.

The lab imports the core; nothing of the core imports the lab.
"""
