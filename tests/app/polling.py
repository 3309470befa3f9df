"""Find buttons of a page, and run it as its polling does until something shows up."""

from __future__ import annotations

import time


def button(app, label):
    return next(b for b in app.button if b.label.startswith(label))


def wait(app, label, seconds=60.0):
    """Run the page, as its polling does, until a sentence or button shows up."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        app.run()
        said = [b.label for b in app.button] + [e.value for e in (*app.success, *app.info, *app.error)]
        if any(text.startswith(label) for text in said):
            return app
        time.sleep(0.05)
    raise AssertionError(f"{label!r} did not show up; there are {said}")
