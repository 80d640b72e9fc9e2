"""`python -m lookalike.cli` is `lookalike`."""

import sys

from lookalike.cli import command_line

sys.exit(command_line())
