"""The tests of this paper share a file of tensors."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
