"""What the examples have around them: a server, processes to watch and kill, a verdict at the end.

Nothing here is needed to use Tenure. The files of each example that show its use never import this
package; only its `run` does. It needs Python 3.9 or newer and nothing else; what an example needs
from PyPI goes into its own folder.
"""

from .part import Part
from .scene import Scene
from .tools import CannotRun

__all__ = ["CannotRun", "Part", "Scene"]
