"""Writes explorers: Plotly figures that work without a kernel and without other hosts.

An output with Plotly's mimetype becomes a placeholder of the right height that says in words what there is to see.
`_static/explorer.js` loads the figure, a separate script,
and Plotly from the site itself once a placeholder comes into view, replaces Plotly's drawn sliders by the browser's
own, keeps their places in the address, and follows the light or dark theme. With one slider its steps act as Plotly
defines them; with several, the frame is shown whose name is the steps' values joined by "|". Where ``layout.meta`` has
``compute``, a script that defines a function of that name, the frame is what it returns for the steps' values.
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


def placeholder(figure: dict[str, Any], vendor_url: str, name: str, files_url: str) -> str:
    """Write the HTML that becomes the figure in the browser; ``layout.meta.alt`` is its description.

    ``name`` is its anchor; ``files_url`` is the address of the figure without its ending.
    """
    layout = figure.get("layout", {})
    alt = (layout.get("meta") or {}).get("alt")
    if not alt:
        raise ValueError("an explorer has no description: set layout.meta.alt")
    return Markup(
        '<div class="explorer tex2jax_ignore" id="{name}" role="group" aria-label="{alt}" data-plotly="{url}" '
        'data-figure="{files}.js" style="--explorer-height: {height}px">\n'
        '<p class="explorer-fallback">{alt}</p>\n</div>'
    ).format(name=name, alt=alt, url=vendor_url, files=files_url, height=int(layout.get("height") or 420))


def script(figure: dict[str, Any], file: str) -> str:
    """Write a script that stores the figure under the name of its file, where `_static/explorer.js` looks."""
    layout = {key: value for key, value in figure.get("layout", {}).items() if key != "template"}
    meta = dict(layout.get("meta") or {})
    compute = meta.pop("compute", None)
    spec = {"data": figure.get("data", []), "layout": layout | {"meta": meta}, "frames": figure.get("frames", [])}
    text = f"(window.EXPLORERS ??= {{}})[{json.dumps(file)}] = {json.dumps(spec, separators=(',', ':'))};\n"
    return text + (f"EXPLORERS[{json.dumps(file)}].compute = {function(compute)};\n" if compute else "")


def function(compute: str) -> str:
    """Write a script that defines `compute` as an expression, keeping its other names local."""
    return f"(() => {{\n{compute}\nreturn compute;\n}})()"


def replace(output: dict[str, Any], vendor_url: str, name: str, files: Path) -> dict[str, Any]:
    """Replace the Plotly figure of an output by its placeholder; the figure goes to ``files``."""
    figure = output["data"][PLOTLY]
    html = str(placeholder(figure, vendor_url, name, f"../{files.parent.name}/{files.name}"))
    files.parent.mkdir(parents=True, exist_ok=True)
    files.with_suffix(".js").write_text(script(figure, f"{files.name}.js"), "utf-8")
    return {"output_type": "display_data", "data": {"text/html": html}, "metadata": {}}
