import streamlit as st

from ui import headlines, job_panel, show, worklist
from ui.router import require_entrypoint
from ui.sections.claims import form, planted, run

require_entrypoint()
headlines.heading("claims")

job_panel.draw("claims")
if show.needs_run():
    if headlines.lacks("claims"):
        form.first()
    else:
        headlines.body("claims")
        form.again()
        planted.draw()

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

        st.subheader("Questions", anchor=False)
        worklist.door("claims")
