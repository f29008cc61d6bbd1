# SPDX-License-Identifier: GPL-2.0
"""Imported by the guest's programs: MariaDB, and sysbench's OLTP tests of it.

The database is made in memory once, when it is first copied to a device.
"""
import contextlib
import functools
import pathlib
import re
import subprocess
import sys
import time

from common import command

# The database of sysbench's OLTP tests, without the server's own tables.
FOLDER = pathlib.Path("/run/database")
TABLES, ROWS = 40, 2000
TABLE = """CREATE TABLE sbtest{number} (
	id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER DEFAULT 0 NOT NULL,
	c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL,
	PRIMARY KEY (id), KEY k_{number} (k)) ENGINE=InnoDB;
INSERT INTO sbtest{number} SELECT seq, 1 + FLOOR({rows} * RAND(seq)),
	REPEAT('0123456789-', 10), REPEAT('0123456789-', 5) FROM seq_1_to_{rows};
"""
# MySQL's defaults of the paper's time: 8 MB for pages, a log write for each commit. O_DIRECT,
# because the page cache would hold the whole of so small a database.
SERVER = ["mariadbd", "--no-defaults", "--user=root", "--skip-grant-tables",
          "--skip-networking", "--skip-log-bin", "--performance-schema=0",
          "--innodb-buffer-pool-size=8M", "--innodb-log-file-size=8M",
          "--innodb-flush-method=O_DIRECT", "--innodb-flush-log-at-trx-commit=1",
          "--innodb-buffer-pool-dump-at-shutdown=0", "--innodb-buffer-pool-load-at-startup=0",
          "--innodb-stats-persistent=0", "--aria-log-file-size=8M", "--max-connections=200",
          # No time limit: a slow drive makes the server hold a lock for long.
          "--innodb-fatal-semaphore-wait-threshold=4294967295"]
SOCKET = "/run/mariadbd.sock"


@functools.cache
def make():
    """Make the database in FOLDER, which is in memory."""
    FOLDER.mkdir()
    sql = "CREATE DATABASE sbtest;\nUSE sbtest;\n" + "".join(
        TABLE.format(number=number, rows=ROWS) for number in range(1, TABLES + 1))
    options = [word for word in SERVER if "flush-method" not in word]
    command(*options, f"--datadir={FOLDER}", "--bootstrap", input=sql)


def copy(data):
    """Copy the database to a new folder @data."""
    make()
    command("cp", "-r", FOLDER, data)


@contextlib.contextmanager
def server(data):
    """Run the server of the database in a folder @data. Once it has ended, all data has
    reached the device."""
    log = pathlib.Path("/run/mariadbd.log")
    with open(log, "w", encoding="utf-8") as out, subprocess.Popen(
            [*SERVER, f"--datadir={data}", f"--socket={SOCKET}",
             "--pid-file=/run/mariadbd.pid"], stdout=out, stderr=out) as process:
        while process.poll() is None and "ready for connections" not in log.read_text():
            time.sleep(0.01)
        try:
            yield
        finally:
            process.terminate()
            if process.wait():
                sys.exit(f"mariadbd: {log.read_text()[-1000:]}")


def number(text, printed):
    """Return the number after @text in sysbench's output."""
    found = re.search(rf"{text} +([0-9.]+)", printed)
    if not found:
        sys.exit(f"sysbench: {printed[-500:]}")
    return float(found[1])


def oltp(variables):
    """Run sysbench's OLTP test; return transactions/s, seconds, and the mean and the 99th
    percentile of the ms of a transaction."""
    printed = command("sysbench", variables["TEST"], "--db-driver=mysql",
                      f"--mysql-socket={SOCKET}", "--mysql-user=root", f"--tables={TABLES}",
                      f"--table-size={ROWS}", "--rand-type=uniform", "--db-ps-mode=disable",
                      f"--threads={variables['THREADS']}", f"--events={variables['EVENTS']}",
                      "--time=0", f"--rand-seed={variables.get('SEED', 712)}", "--percentile=99",
                      "run")
    # sysbench prints two decimals of its rate and four of its time.
    seconds = number("total time:", printed)
    return {"tps": number("total number of events:", printed) / seconds, "seconds": seconds,
            "mean": number("avg:", printed), "p99": number("99th percentile:", printed)}
