"""Leadline's frame: page settings, the data source in the sidebar, and navigation."""

import streamlit as st

from ui import library, router, sources

st.set_page_config(
    page_title="Leadline",
    page_icon=str(library.ROOT / "ui" / "leadline-mark.svg"),
    layout="wide",
    menu_items={"About": "Leadline: which retrieved passages an answer really rests on."},
)
st.logo(str(library.ROOT / "ui" / "leadline.svg"), size="large")
page = st.navigation(router.build_pages())
sources.follow_link()
with st.sidebar:
    sources.panel()
    st.slider(
        "Divergence threshold τ",
        -1.0,
        1.0,
        0.7,
        0.05,
        key="threshold",
        bind="query-params",
        help="Questions with rank agreement ρ ≥ τ are called aligned, those below divergent. "
        "This one setting drives every page.",
    )
router.run(page)
