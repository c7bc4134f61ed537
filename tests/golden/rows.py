"""The golden table: fixed data, settings and seeds, each row naming every setting it rests on."""

from golden import classifiers, messages, searches, surveys
from golden.record import Rows

ROWS: Rows = {**messages.ROWS, **surveys.ROWS, **searches.ROWS, **classifiers.ROWS}
