# SPDX-License-Identifier: GPL-2.0
"""HTML files that need no other, made of the templates in the folders templates/. All that a report
says is escaped."""
import pathlib

from ssd_common import packages

TEMPLATES = pathlib.Path(__file__).resolve().parent / "templates"


def need():
    """Raise ToolError if no page can be made."""
    packages.need("jinja2")


def render(name: str, folder: pathlib.Path, **values) -> str:
    """Return a page. @name: of a template in a folder; it may use those beside this module.
    @values: what the template names."""
    jinja2 = packages.need("jinja2")
    made = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True,
                              lstrip_blocks=True, keep_trailing_newline=True,
                              loader=jinja2.FileSystemLoader([folder, TEMPLATES]))
    return made.get_template(name).render(**values)
