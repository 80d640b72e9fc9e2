"""`python -m lookalike.cli` is `lookalike`."""

import sys

from lookalike.cli import main

sys.exit(main())
