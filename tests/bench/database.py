# SPDX-License-Identifier: GPL-2.0
"""Imported by the guests' programs: MariaDB, and sysbench's OLTP tests of it.

The database is made once, in memory, when it is first copied to a device.
"""
import contextlib
import functools
import pathlib
import re
import subprocess
import sys
import time

from guest import command

# A database of sysbench's OLTP, without the server's own tables.
FOLDER = pathlib.Path("/run/database")
TABLES, ROWS = 40, 2000
TABLE = """CREATE TABLE sbtest{number} (
	id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER DEFAULT 0 NOT NULL,
	c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL,
	PRIMARY KEY (id), KEY k_{number} (k)) ENGINE=InnoDB;
INSERT INTO sbtest{number} SELECT seq, 1 + FLOOR({rows} * RAND(seq)),
	REPEAT('0123456789-', 10), REPEAT('0123456789-', 5) FROM seq_1_to_{rows};
"""
# As MySQL came in the paper's time: 8 MB for pages, a log write for each commit. Past
# the page cache, else all of so small a database would be in it.
SERVER = ["mariadbd", "--no-defaults", "--user=root", "--skip-grant-tables",
          "--skip-networking", "--skip-log-bin", "--performance-schema=0",
          "--innodb-buffer-pool-size=8M", "--innodb-log-file-size=8M",
          "--innodb-flush-method=O_DIRECT", "--innodb-flush-log-at-trx-commit=1",
          "--innodb-buffer-pool-dump-at-shutdown=0", "--innodb-buffer-pool-load-at-startup=0",
          "--innodb-stats-persistent=0", "--aria-log-file-size=8M", "--max-connections=200",
          # On a slow drive a lock may be held for long: no time limit.
          "--innodb-fatal-semaphore-wait-threshold=4294967295"]
SOCKET = "/run/mariadbd.sock"


@functools.cache
def make():
    """Make the database in its folder, in memory."""
    FOLDER.mkdir()
    sql = "CREATE DATABASE sbtest;\nUSE sbtest;\n" + "".join(
        TABLE.format(number=number, rows=ROWS) for number in range(1, TABLES + 1))
    options = [word for word in SERVER if "flush-method" not in word]
    command(*options, f"--datadir={FOLDER}", "--bootstrap", input=sql)


def copy(data):
    """Put the database into a new folder @data."""
    make()
    command("cp", "-r", FOLDER, data)


@contextlib.contextmanager
def server(data):
    """The server of the database in a folder @data; all has reached the device when it has
    ended."""
    log = pathlib.Path("/run/mariadbd.log")
    with open(log, "w", encoding="utf-8") as said, subprocess.Popen(
            [*SERVER, f"--datadir={data}", f"--socket={SOCKET}",
             "--pid-file=/run/mariadbd.pid"], stdout=said, stderr=said) as process:
        while process.poll() is None and "ready for connections" not in log.read_text():
            time.sleep(0.01)
        try:
            yield
        finally:
            process.terminate()
            if process.wait():
                sys.exit(f"mariadbd: {log.read_text()[-1000:]}")


def number(text, said):
    """A figure that sysbench tells after some words."""
    found = re.search(rf"{text} +([0-9.]+)", said)
    if not found:
        sys.exit(f"sysbench: {said[-500:]}")
    return float(found[1])


def oltp(variables):
    """sysbench's OLTP test: transactions a second, and ms of each."""
    said = command("sysbench", variables["TEST"], "--db-driver=mysql",
                   f"--mysql-socket={SOCKET}", "--mysql-user=root", f"--tables={TABLES}",
                   f"--table-size={ROWS}", "--rand-type=uniform", "--db-ps-mode=disable",
                   f"--threads={variables['THREADS']}", f"--events={variables['EVENTS']}",
                   "--time=0", f"--rand-seed={variables.get('SEED', 712)}", "--percentile=99",
                   "run")
    # Its own rate has two digits and its time four.
    seconds = number("total time:", said)
    return {"tps": number("total number of events:", said) / seconds, "seconds": seconds,
            "mean": number("avg:", said), "p99": number("99th percentile:", said)}
