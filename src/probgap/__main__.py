"""``python -m probgap`` is the command ``probgap``."""

from probgap.cli import main

main()
