"""What this machine computes well."""

from __future__ import annotations

from pathlib import Path


def choose_device(asked: str) -> str:
    """Return the device asked for; ``auto`` is a GPU where there is one, else the processor."""
    if asked != "auto":
        return asked
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def best_dtype(device: str) -> str:
    """Return the fastest number type the device computes in by itself."""
    import torch

    if device.startswith("cuda"):
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"
    return "bfloat16" if device == "cpu" and _processor_has_bfloat16() else "float32"


def _processor_has_bfloat16() -> bool:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return not {"avx512_bf16", "amx_bf16", "bf16"}.isdisjoint(text.split())
