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


def put(path, data, mode):
    """Write a file; return no data."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(base64.b64decode(data))
    os.chmod(path, mode)
    return b""


def get(path):
    """Return a file's bytes."""
    with open(path, "rb") as file:
        return file.read()


def transfer(answer, function, **fields):
    """Write or read a file; answer with its data, or with the error."""
    try:
        status, data = 0, function(**fields)
    except OSError as error:
        status, data = 1, str(error).encode()
    answer(status=status, data=base64.b64encode(data).decode())


def serve(requests, port):
    """Carry out requests until the guest ends."""
    def answer(**fields):
        answers.write(json.dumps(fields).encode() + b"\n")
        answers.flush()

    answers = open(port.fileno(), "wb", closefd=False)

    for line in requests:
        fields = json.loads(line)
        do = fields.pop("do")
        if do == "run":
            run(answer, **fields)
        else:
            transfer(answer, {"put": put, "get": get}[do], **fields)


if __name__ == "__main__":
    serve(requests, port)  # noqa: F821 # the loader's variables
