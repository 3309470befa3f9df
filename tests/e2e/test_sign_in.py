"""Several people on one server, with a real OpenID Connect provider, set up as docs/team.md says."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import time
import tomllib
import urllib.request
from urllib.parse import parse_qs, urlsplit

import pytest

from core.run import Run
from tests.e2e.driving import main_text, published_shape, sidebar_text, upload
from tests.e2e.running_app import ROOT, free_port, running_app, settle, still_context

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
ADA, BOB, EVE = "ada@example.org", "bob@example.org", "eve@example.com"
(TOML,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "team.md").read_text(encoding="utf-8"), re.DOTALL)


def test_the_worked_configuration_is_complete():
    found = tomllib.loads(TOML)
    assert {*found["auth"]} == {
        "redirect_uri", "cookie_secret", "client_id", "client_secret", "server_metadata_url",
    }  # fmt: skip
    assert found["roles"] == {"default": "reader", "@example.org": "reviewer", ADA: "runner"}


@contextlib.contextmanager
def provider(log):
    """Run an OpenID Connect provider in a process of its own, with three accounts; yield its address."""
    port, claims = free_port(), ({"sub": one.partition("@")[0], "email": one} for one in (ADA, BOB, EVE))
    accounts = [part for one in claims for part in ("--user-claims", json.dumps(one))]
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "oidc_provider_mock", "--port", str(port), *accounts],
            stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            address = f"http://127.0.0.1:{port}"
            while True:
                assert process.poll() is None, log.read_text()
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"{address}/.well-known/openid-configuration", timeout=5).close()
                    break
                time.sleep(0.1)
            yield address
        finally:
            process.terminate()
            process.wait()


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    """Serve the dashboard with sign-in; yield its address and its runs folder."""
    folder, port = tmp_path_factory.mktemp("team"), free_port()
    with provider(folder / "provider.log") as login:
        secrets = TOML.replace("https://leadline.example.org", f"http://localhost:{port}")
        secrets = secrets.replace("https://login.example.org", login)
        assert secrets.count("example.org/") == 0, "everything points at this test"
        (folder / "secrets.toml").write_text(secrets)
        options = ("--secrets.files", str(folder / "secrets.toml"))
        alone = {"LEADLINE_SAMPLES": str(folder / "none")}  # nobody waits for the Overview of a sample
        with running_app(folder / "runs", folder / "server.log", *options, port=port, **alone) as address:
            yield address, folder / "runs"


@pytest.fixture
def arrive(browser, team):
    """Open the app in a browser of one's own, not signed in; fail on any error of a script of the app."""
    address, contexts, errors = team[0], [], []

    def opened():
        context = still_context(browser, viewport={"width": 1280, "height": 900})
        context.route("https://cdn.jsdelivr.net/**", lambda route: route.abort())  # the provider's looks
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{address}/data")
        page.get_by_role("button", name="Sign in").wait_for(timeout=60_000)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not errors


def sign_in(page, person):
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name=person.partition("@")[0], exact=True).click()
    page.get_by_role("button", name="Sign out").wait_for(timeout=60_000)
    settle(page)


def test_people_sign_in_and_see_what_is_theirs_or_shared(team, arrive):
    address, runs = team
    ada = arrive()
    assert "Sign in to read runs." in main_text(ada) and "Upload" not in main_text(ada)
    assert not ada.get_by_test_id("stSidebar").is_visible() or "Overview" not in sidebar_text(ada)
    sign_in(ada, ADA)
    assert f"{ADA} · runner" in sidebar_text(ada).replace("\u2060", "")
    upload(ada, address, "private.csv", published_shape())
    ada.get_by_role("button", name="Save to my runs").first.click()
    ada.wait_for_url("**run=*")
    settle(ada)
    (path,) = runs.glob("*/run.json")
    saved = Run.load(path.parent)
    assert saved.manifest["person"] == ADA and parse_qs(urlsplit(ada.url).query)["run"] == [saved.run_id]

    bob = arrive()
    sign_in(bob, BOB)
    assert f"{BOB} · reviewer" in sidebar_text(bob).replace("\u2060", "")
    bob.goto(f"{address}/?run={saved.run_id}")
    bob.get_by_text("another person who has not shared it").first.wait_for(timeout=60_000)

    ada.get_by_text("Saved runs", exact=True).first.click()
    ada.get_by_text("Share with everyone here").first.click()
    settle(ada)
    assert (path.parent / "shared").exists()
    bob.goto(f"{address}/data?door=Saved%20runs&run={saved.run_id}")
    bob.get_by_test_id("stSidebar").get_by_text("private").wait_for(timeout=60_000)
    settle(bob)
    assert "private" in main_text(bob) and "Share with everyone here" not in main_text(bob)

    # A reader by default: the run is there, the upload is not.
    bob.get_by_role("button", name="Sign out").click()
    bob.get_by_role("button", name="End session").click()
    bob.get_by_role("button", name="Sign in").wait_for(timeout=60_000)
    assert "private" not in bob.locator("body").inner_text()
    sign_in(bob, EVE)
    bob.goto(f"{address}/data?run={saved.run_id}")
    bob.get_by_text("Your role here is reader").first.wait_for(timeout=60_000)
    assert "private" in sidebar_text(bob) and bob.locator("input[type='file']").is_disabled()
