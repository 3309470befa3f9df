import streamlit as st

from ui import show, step_form, worklist
from ui.router import require_entrypoint
from ui.sections.claims import form, run

require_entrypoint()
if step_form.opening("claims", form.first):
    form.again()
    run.planted()

    st.subheader("Claims against passages", anchor=False)
    run.judged_by()
    run.matrix()

    run.influence_against_support()

    run.unsupported()
    with show.more():
        run.quadrants()
        run.f1()
        run.ragchecker()
        show.export("claims-csv", "Download claims × passages (CSV)")

    worklist.door("claims")
