"""From a CSV to firmware: one small network as C that gives Python's answers.

    python examples/csv_to_firmware.py [FOLDER]

The folder gets a header without heap or libc, with rows of the table inside that check it. Where a
C compiler is installed, the check is compiled and run.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from vitrail import BinaryNetClassifier, read_table

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "firmware")
folder.mkdir(exist_ok=True)

rng = np.random.default_rng(0)
lines = ["temperature,current,speed,state"]
for _ in range(400):
    warm, amps, turns = rng.normal(60, 12), rng.normal(5, 1.5), int(rng.integers(800, 3000))
    hot = warm > 70 or (amps > 6 and turns < 1500)
    lines.append(f"{warm:.1f},{amps:.2f},{turns},{'stop' if hot else 'run'}")
source = folder / "motor.csv"
source.write_text("\n".join(lines))

table = read_table(source)
rows, labels = table.without("state"), table["state"]
train, unseen = np.arange(300), np.arange(300, 400)
net = BinaryNetClassifier(hidden=(3,), predictor="best", random_state=0)
net.fit(rows.take(train), labels[train])
right = float(np.mean(net.predict(rows.take(unseen)) == labels[unseen]))
print(f"{net.model_.bits} bits: {right:.3f} of unseen rows right")

(header,) = net.export(folder, to="c", name="motor", rows=rows)
print(f"{header.name}: {header.stat().st_size:,} bytes of source")

if compiler := shutil.which("cc"):
    main = folder / "main.c"
    main.write_text(
        '#define MOTOR_CHECK\n#include <stdio.h>\n#include "motor.h"\n'
        'int main(void) { unsigned wrong = motor_check(); printf("%u answers differ\\n", wrong);'
        " return wrong != 0; }\n"
    )
    subprocess.run([compiler, "-Os", "-o", folder / "motor", main], check=True)
    subprocess.run([folder / "motor"], check=True)
