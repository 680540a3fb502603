"""The tests of this paper share a file of problems."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
