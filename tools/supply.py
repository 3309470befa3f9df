"""What an installation brings: constraints.txt, the page of licences and the wheel's SBOM (`make supply`).

uv resolves the requirements for every system at once and lists the hashes of all files of each version. A
version that constraints.txt names stays; to get another, change it there. pip compares every file that it
takes with those hashes, and refuses a package that has none.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

import core

ROOT = Path(__file__).parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
PAGE = ROOT / "docs/reference/licences.md"
SBOM = ROOT / "tools/leadline.cdx.json"
# The oldest Python for which all of them, those of the tests too, have a version.
PYTHON = "3.11.5"
# What the wheel requires, and its extras; `dev` is for work on leadline, not for its use.
GROUPS = {
    "requirements.txt": "leadline",
    "requirements-embedded.txt": "leadline[embedded]",
    "requirements-scale.txt": "leadline[scale]",
}
# A file of PyTorch's own index, which PyPI lacks: the build without GPU libraries that the tests run with.
ELSEWHERE = {
    "torch": {
        "https://download.pytorch.org/whl/cpu/torch-2.13.0%2Bcpu-cp311-cp311-manylinux_2_28_x86_64.whl": (
            "6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b"
        )
    }
}
# What metadata say that is no SPDX expression but means one.
MEANT = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "Apache2.0": "Apache-2.0",
    "ISC License": "ISC",
    "MIT License": "MIT",
    "Python Software Foundation License": "PSF-2.0",
}
BY_HAND = {
    # The metadata say only "BSD", or name two licences without their relation; these are the texts.
    **dict.fromkeys("altair colorama itsdangerous jinja2 mpmath scipy sympy".split(), "BSD-3-Clause"),
    "pystemmer": "MIT AND BSD-3-Clause",
    # What other systems than that of the tests install, from the files in the package index.
    **dict.fromkeys("cuda-bindings cuda-pathfinder nvidia-nvtx watchdog".split(), "Apache-2.0"),
    **dict.fromkeys(
        "nvidia-cublas nvidia-cuda-cupti nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cudnn-cu13 "
        "nvidia-cufft nvidia-cufile nvidia-curand nvidia-cusolver nvidia-cusparse nvidia-cusparselt-cu13 "
        "nvidia-nccl-cu13 nvidia-nvjitlink nvidia-nvshmem-cu13".split(),
        "LicenseRef-NVIDIA-Proprietary",
    ),
    "httpx2-jsfetch": "BSD-3-Clause",
    "triton": "MIT",
    # An empty package, which requires those above and states no licence.
    "cuda-toolkit": "LicenseRef-none-stated",
}
INTRODUCTION = """\
# Licences

What `pip install leadline` brings and what each extra adds, in the versions of `constraints.txt`, with the
SPDX expressions of their licences. Some come only on some systems: the GPU libraries of torch (`cuda-*`,
`nvidia-*`, `triton`) on Linux, where pip takes torch from PyPI. The wheel has the same as an SBOM (CycloneDX
1.6) in `.dist-info/sboms/`. Made by `make supply` from the metadata of the packages; where those say too
little, `tools/supply.py` names the licence.
"""


@dataclass(frozen=True)
class Pin:
    """One version that constraints.txt names."""

    name: str
    version: str
    hashes: tuple[str, ...]
    # Packages that require it; a file of requirements as `-r` and its name. Unknown for what only tests need.
    wanted_by: tuple[str, ...]

    @property
    def purl(self) -> str:
        """Its package URL."""
        return f"pkg:pypi/{self.name}@{self.version}"


def blocks(text: str) -> list[tuple[str, str]]:
    """Return the name and the lines of each package in constraints.txt."""
    return re.findall(r"^(?=([\w.-]+)==)(.*\n(?: .*\n)*)", text, re.MULTILINE)


def pins(text: str) -> dict[str, Pin]:
    r"""Return what constraints.txt names.

    >>> pins("idna==3.20 \\\n    --hash=sha256:0f\n    # via httpx, -r more.txt\n")["idna"]
    Pin(name='idna', version='3.20', hashes=('0f',), wanted_by=('httpx', '-r more.txt'))
    """
    found = {}
    for name, block in blocks(text):
        version = block.split()[0].partition("==")[2]
        wanted = block.partition("# via ")[2].strip().split(", ")
        found[name] = Pin(name, version, tuple(re.findall(r"sha256:(\w+)", block)), tuple(wanted))
    return found


def locked(old: str) -> str:
    """Return constraints.txt anew: the versions that it names, where the requirements allow them."""
    chosen: dict[str, str] = {}
    for arguments in (
        ("--annotation-style", "line", "requirements.txt", "requirements-scale.txt"),
        # Without `via`: the tests require more of some packages than users do.
        ("--no-annotate", "requirements-dev.txt"),
        # Installed without their own requirements, some of which contradict ours.
        ("--no-annotate", "--no-deps", "requirements-models.txt", "requirements-peers.txt"),
    ):
        known = pins(old) | pins("".join(chosen.values()))
        for name, block in blocks(_compiled(known, *arguments)):
            if chosen.setdefault(name, block).split()[0] != block.split()[0]:
                raise SystemExit(f"{arguments[-1]} does not go with {chosen[name].split()[0]}.")
    for name, files in ELSEWHERE.items():
        first, rest = chosen[name].split(maxsplit=1)
        chosen[name] = first + "".join(f" \\\n    --hash=sha256:{one}" for one in files.values()) + f" {rest}"
    ordered = "".join(chosen[name] for name in sorted(chosen))
    return f"# Written by `make supply`: see tools/supply.py.\n{ordered}"


def _compiled(known: Mapping[str, Pin], *arguments: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        # uv keeps the versions that its output file names; it would keep the hashes of that file too.
        output = Path(folder) / "constraints.txt"
        output.write_text("".join(f"{pin.name}=={pin.version}\n" for pin in known.values()), encoding="utf-8")
        options = "--quiet --universal --generate-hashes --no-header --python-version"
        command = [sys.executable, "-m", "uv", "pip", "compile", *options.split(), PYTHON, "-o", str(output)]
        subprocess.run([*command, *arguments], cwd=ROOT, check=True)
        # On which systems a package is needed, the requirements say, and they differ between the lists.
        return re.sub(r" ;.*(?= \\$)", "", output.read_text(encoding="utf-8"), flags=re.MULTILINE)


def brought(known: Mapping[str, Pin], file: str) -> set[str]:
    """Return the names of what a file of requirements brings, with what that requires in turn."""
    found: set[str] = set()
    new = {name for name, pin in known.items() if f"-r {file}" in pin.wanted_by}
    while new:
        found |= new
        new = {name for name, pin in known.items() if new & set(pin.wanted_by)} - found
    return found


def groups(known: Mapping[str, Pin]) -> dict[str, list[Pin]]:
    """Return what the package brings, and what each extra adds to that."""
    found = {title: brought(known, file) for file, title in GROUPS.items()}
    return {
        title: [known[name] for name in sorted(names if title == "leadline" else names - found["leadline"])]
        for title, names in found.items()
    }


def licence(pin: Pin) -> str:
    """Return the SPDX expression of its licence: by hand, or from the metadata of the installed package."""
    if pin.name in BY_HAND:
        return BY_HAND[pin.name]
    try:
        found = distribution(pin.name)
    except PackageNotFoundError:
        raise SystemExit(f"{pin.name} is not installed here; put its licence into BY_HAND.") from None
    # The build of torch without GPU libraries calls itself 2.13.0+cpu.
    if found.version.split("+")[0] != pin.version:
        raise SystemExit(f"{pin.name} {found.version} is installed, not {pin.version}: run make supply.")
    stated = [
        text.split(" :: ")[-1]
        for field in ("License-Expression", "License", "Classifier")
        for text in found.metadata.get_all(field) or ()
        if field != "Classifier" or text.startswith("License :: ")
    ]
    for text in stated:
        try:
            return canonicalize_license_expression(MEANT.get(text, text))
        except InvalidLicenseExpression:
            continue
    raise SystemExit(f"{pin.name}: no licence in {stated}; read it and put it into BY_HAND.")


def page(known: Mapping[str, Pin]) -> str:
    """Return the page of licences."""
    lines = [INTRODUCTION]
    for title, listed in groups(known).items():
        lines += [f"## {title}", "", "| package | version | licence | required by |", "|---|---|---|---|"]
        for pin in listed:
            requirers = ", ".join(_requirers(pin))
            lines.append(f"| {pin.name} | {pin.version} | {licence(pin)} | {requirers} |")
        lines.append("")
    return "\n".join(lines)


def _requirers(pin: Pin) -> list[str]:
    files = {f"-r {file}": title for file, title in GROUPS.items()}
    return [files.get(name, name) for name in pin.wanted_by]


def sbom(known: Mapping[str, Pin]) -> str:
    """Return the components of the wheel as CycloneDX 1.6; those that only an extra brings are optional."""
    listed = groups(known)
    everything = sorted({pin for group in listed.values() for pin in group}, key=lambda pin: pin.name)
    own = f"pkg:pypi/leadline@{core.__version__}"
    needs: dict[str, set[str]] = {ref: set() for ref in (own, *(pin.purl for pin in everything))}
    for pin in everything:
        for name in _requirers(pin):
            needs[known[name].purl if name in known else own].add(pin.purl)
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": _component("leadline", core.__version__, own, "Apache-2.0")},
        "components": [
            _component(pin.name, pin.version, pin.purl, licence(pin))
            | {
                "scope": "required" if pin in listed["leadline"] else "optional",
                "externalReferences": list(_files(pin)),
            }
            for pin in everything
        ],
        "dependencies": [{"ref": ref, "dependsOn": sorted(refs)} for ref, refs in needs.items()],
    }
    # A line for each package: a difference then shows which changed.
    return re.sub(r', (?=\{"(type": "library|ref)")', ",\n", json.dumps(content)) + "\n"


def _component(name: str, version: str, purl: str, expression: str) -> dict[str, Any]:
    described = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    return described | {"licenses": [{"expression": expression}]}


def _files(pin: Pin) -> Iterator[dict[str, Any]]:
    elsewhere = ELSEWHERE.get(pin.name, {})
    listed = {address: [one] for address, one in elsewhere.items()}
    listed[f"https://pypi.org/simple/{pin.name}/"] = sorted(set(pin.hashes) - set(elsewhere.values()))
    for address, hashes in listed.items():
        found = [{"alg": "SHA-256", "content": one} for one in hashes]
        yield {"type": "distribution", "url": address, "hashes": found}


def main(what: str) -> None:
    """Write constraints.txt or, once that is installed, the page and the SBOM."""
    text = CONSTRAINTS.read_text(encoding="utf-8")
    if what == "constraints":
        CONSTRAINTS.write_text(locked(text), encoding="utf-8")
    else:
        PAGE.write_text(page(pins(text)), encoding="utf-8")
        SBOM.write_text(sbom(pins(text)), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
