# SPDX-License-Identifier: GPL-2.0
"""Runs in a guest of scripts/system, as root: carries out the host's requests. lab.service of the
guest takes this text from the host; labvm/whole.py is the other end. A request is a line of JSON
on the port, an answer too; before the last answer to "run" there are {"out": TEXT} lines."""
import base64
import json
import os
import subprocess

ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
               "HOME": "/root", "LANG": "C.UTF-8", "TERM": "dumb",
               "DEBIAN_FRONTEND": "noninteractive"}


def run(answer, command):
    """Run a shell command; its output is sent while it runs."""
    process = subprocess.Popen(["bash", "-c", command], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/root",
                               env=ENVIRONMENT)
    while data := process.stdout.read1(65536):
        answer(out=base64.b64encode(data).decode())
    answer(status=process.wait())


def put(answer, path, data, mode):
    """Write a file."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(base64.b64decode(data))
    os.chmod(path, mode)
    answer(status=0)


def get(answer, path):
    """Read a file."""
    try:
        with open(path, "rb") as file:
            answer(status=0, data=base64.b64encode(file.read()).decode())
    except OSError as error:
        answer(status=1, data=base64.b64encode(str(error).encode()).decode())


def serve(requests, port):
    """Carry out requests until the guest ends."""
    def answer(**fields):
        answers.write(json.dumps(fields).encode() + b"\n")
        answers.flush()

    answers = open(port.fileno(), "wb", closefd=False)

    for line in requests:
        fields = json.loads(line)
        {"run": run, "put": put, "get": get}[fields.pop("do")](answer, **fields)


if __name__ == "__main__":
    serve(requests, port)  # noqa: F821 # the loader's variables
