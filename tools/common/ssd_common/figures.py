# SPDX-License-Identifier: GPL-2.0
"""Figures of matplotlib, as images in a page that needs no other file."""
import base64
import io

NO_FIGURES = "no figures: matplotlib is missing (install python3-matplotlib)"


def address(drawn, pyplot, form: str, **how) -> str:
    """Return a figure as an image's address that holds the image itself. @form: svg or png."""
    image = io.BytesIO()
    drawn.savefig(image, format=form, **how)
    pyplot.close(drawn)
    kind = "svg+xml" if form == "svg" else form
    return f"data:image/{kind};base64,{base64.b64encode(image.getvalue()).decode()}"


def literal(text: str) -> str:
    """Return a text for a figure, where a dollar would begin a formula."""
    return text.replace("$", r"\$")


def drawing(salt: str = "ssd-probe"):
    """Return pyplot, which opens no window; None if matplotlib is missing. @salt: of the names in
    an SVG."""
    try:
        import matplotlib
        matplotlib.use("Agg")
        # The same data make the same file.
        matplotlib.rcParams["svg.hashsalt"] = salt
        from matplotlib import pyplot
    except ImportError:
        return None
    return pyplot
