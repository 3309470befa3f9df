"""Find buttons of a page, and run it as its polling does until something shows up."""

from __future__ import annotations

import threading
import time

from ui import jobs


def button(app, label):
    return next(b for b in app.button if begins(b.label, label))


def begins(text, label):
    """Tell whether a text begins like this; "Run" is the button below an estimate, not the one with a count."""
    return text.startswith(label) and (label.startswith("Run (") or not text.startswith("Run ("))


def until(app, found):
    """Run the page, as its polling does, until something is there or no job goes on any more.

    How long that takes says nothing on a busy machine; only the time limit of the test ends it.
    """
    while True:
        # Asked before the page is drawn, which then shows how they ended.
        over = not any(job.active for job in list(jobs.registry()._jobs.values()))
        app.run()
        if found(app):
            return app
        assert not over, f"no job goes on, and there are only {said(app)}"
        time.sleep(0.05)


def wait(app, label):
    """Run the page until a sentence or button that begins like this shows up."""
    return until(app, lambda app: any(begins(text, label) for text in said(app)))


def said(app):
    elements = (*app.success, *app.info, *app.warning, *app.error)
    return [b.label for b in app.button] + [element.value for element in elements]


class Gate:
    """A rule of a model that answers so many calls and no more until it is opened, and says when it was asked."""

    def __init__(self, rule, calls=0):
        self.asked, self.opened, self.calls, self._rule = threading.Event(), threading.Event(), calls, rule

    def __call__(self, request):
        self.calls -= 1
        if self.calls < 0:
            self.asked.set()
            assert self.opened.wait(240), "nobody opened the gate"
        return self._rule(request)
