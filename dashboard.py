"""Leadline's frame: page settings, the data source in the sidebar, and navigation."""

import streamlit as st

from ui import job_panel, library, people, router, settings, sources

st.set_page_config(
    page_title="Leadline",
    page_icon=str(library.ROOT / "ui" / "leadline-mark.svg"),
    layout="wide",
    menu_items={"About": "Leadline: which retrieved passages an answer really uses."},
)
st.html(library.ROOT / "ui" / "leadline.css")
st.logo(str(library.ROOT / "ui" / "leadline.svg"), size="large")
pages = router.menu()
page = router.chosen(pages)
if people.entered():
    sources.follow_link()
    with st.sidebar:
        sources.panel()
        job_panel.status(page.url_path)
        sources.menu(pages)
        settings.panel(page.url_path, every=router.shows_all(page))
        people.panel()
    router.run(page)
