"""Explorers: Plotly figures that work without a kernel and without a request to another host.

An output with Plotly's mimetype becomes a placeholder of the right height that holds the figure as JSON and says in
words what there is to see. `_static/explorer.js` loads Plotly from the site itself once a placeholder comes into view,
replaces Plotly's drawn sliders by the browser's own, and follows the light or dark theme. With one slider its steps act
as Plotly defines them; with several, the frame is shown whose name is the steps' values joined by "|".
"""

import importlib.resources
import json
import shutil
from pathlib import Path
from typing import Any

from markupsafe import Markup

PLOTLY = "application/vnd.plotly.v1+json"


def vendor(into: Path) -> None:
    """Copy Plotly's script out of the installed package."""
    into.mkdir(parents=True, exist_ok=True)
    with importlib.resources.as_file(importlib.resources.files("plotly") / "package_data/plotly.min.js") as script:
        shutil.copyfile(script, into / "plotly.min.js")


def placeholder(figure: dict[str, Any], vendor_url: str) -> str:
    """HTML that becomes the figure in the browser; the figure's ``layout.meta.alt`` is its description."""
    layout = {key: value for key, value in figure.get("layout", {}).items() if key != "template"}
    alt = (layout.get("meta") or {}).get("alt")
    if not alt:
        raise ValueError("an explorer has no description: set layout.meta.alt, or use page.explorer(figure, alt)")
    spec = {"data": figure.get("data", []), "layout": layout, "frames": figure.get("frames", [])}
    text = json.dumps(spec, separators=(",", ":")).replace("<", "\\u003c")  # no </script> inside the script
    return Markup(
        '<div class="explorer tex2jax_ignore" role="group" aria-label="{alt}" data-plotly="{url}" '
        'style="--explorer-height: {height}px">\n<p class="explorer-fallback">{alt}</p>\n'
        '<script type="application/json">{text}</script>\n</div>'
    ).format(alt=alt, url=vendor_url, height=int(layout.get("height") or 420), text=Markup(text))


def replace(output: dict[str, Any], vendor_url: str) -> dict[str, Any]:
    """A cell's output with the placeholder instead of the Plotly figure."""
    html = str(placeholder(output["data"][PLOTLY], vendor_url))
    return {"output_type": "display_data", "data": {"text/html": html}, "metadata": {}}
