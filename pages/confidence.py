import streamlit as st

from ui import headlines, job_panel, show, worklist
from ui.router import require_entrypoint
from ui.sections.confidence import calibrate, run, whatif

require_entrypoint()
headlines.heading("confidence")

job_panel.draw("confidence")
if show.needs_run():
    if headlines.lacks("confidence"):
        run.first()
    else:
        usable = run.is_usable()
        headlines.body("confidence")

        if usable:
            st.subheader("Does the confidence mean what it says?", anchor=False)
            run.reliability()
            run.decision()

            with show.more("Answers by band"):
                run.bands()
            with show.more("Try other signals and weights"):
                whatif.draw()

        with show.more("Learn weights and a map from labels"):
            calibrate.draw()
        with show.more("Combined uncertainty"):
            run.combined()
        run.again()

        worklist.door("confidence")
