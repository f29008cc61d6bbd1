# SPDX-License-Identifier: GPL-2.0
"""A sample of each format of traces that trace-to-fio reads, with the requests in it."""

R, W = "read", "write"
SECTOR = 512
# Two requests, in blocks of 512 bytes: (sector, sectors).
PAIR = [(0, R, 2048 * SECTOR, 4096), (300, W, 4096 * SECTOR, 8192)]
# {format: [(lines, requests)]}, found without --format.
SAMPLES = {
    "blkparse": [(
        "  8,0    1        1     0.001000000   697  Q   R 2048 + 8 [fio]\n"
        "  8,0    1        0     0.001100000     0  m   N cfq697 slice expired\n"
        "  8,0    1        2     0.001200000   697  P   N [fio]\n"
        "  8,0    1        3     0.001250000   697  Q  DS 64 + 8 [fio]\n"
        "  8,0    1        4     0.001260000   697  Q FWS [fio]\n"
        "  8,0    1        5     0.001300000   697  Q FWFSM 4096 + 16 [kworker/0:1]\n"
        "  8,0    1        6     0.001400000   697  C   R 2048 + 8 (    1234) [0]\n"
        "fio (697)\n Reads Queued:           1,        4KiB\t Writes Queued:           1,\n\n"
        "Throughput (R/W): 0KiB/s / 0KiB/s\nEvents (8,0): 6 entries\n", PAIR)],
    "ftrace": [(
        "# tracer: nop\n#\n#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n"
        "          <idle>-0       [001] d..1. 99.900000: sched_switch: prev_comm=a ==> next\n"
        "             fio-697     [001] ..... 100.000000: block_rq_issue: 8,0 R 4096 () 2048 + 8"
        " none,0,0 [fio]\n"
        "             fio-697     [001] ..... 100.000100: block_rq_issue: 8,0 FF 0 () 0 + 0 [fio]\n"
        "             fio-697     [001] ..... 100.000200: block_rq_issue: 8,0 N 36 (12 00 00) 0 + 0"
        " [smartctl]\n"
        "    kworker/1:1H-250     [001] ..... 100.000300: block_rq_issue: 8,0 WS 8192 () 4096 + 16"
        " [kworker/1:1H]\n"
        "          <idle>-0       [001] ..s.. 100.000400: block_rq_complete: 8,0 R () 2048 + 8"
        " [0]\n",
        PAIR),
        # Block events after many others, of which an end is first.
        ("# tracer: nop\n" + " a-1 [000] d..1. 0.5: sched_switch: prev_comm=a ==> next\n" * 20_000 +
         " a-1 [000] .... 0.900000: block_rq_complete: 8,0 R () 64 + 8 [0]\n"
         " a-1 [000] .... 1.000000: block_rq_issue: 8,0 R 4096 () 2048 + 8 [a]\n"
         " a-1 [000] .... 1.000300: block_rq_issue: 8,0 W 8192 () 4096 + 16 [a]\n", PAIR),
        # trace-cmd report -t of a newer version, perf script, bios.
        ("cpus=2\n"
         " fio-2991    0...   119.255974123: block_rq_issue:       8,0 R 4096 () 2048 + 8 [fio]\n"
         " fio-2991    0...   119.256274123: block_rq_issue:       8,0 W 8192 () 4096 + 16 [fio]\n",
         PAIR),
        ("fio 2991 [000] 119.255974: block:block_rq_issue: 8,0 R 4096 () 2048 + 8 [fio]\n"
         "fio 2991 [000] 119.256274: block:block_rq_issue: 8,0 W 8192 () 4096 + 16 [fio]\n", PAIR),
        # The tracer blk, also with cgroups.
        ("# tracer: blk\n#\n"
         " a-1 [000] .... 119.255974:   8,0    Q   R 2048 + 8 [a]\n"
         " a-1 [000] .... 119.255975:   8,0    P   N [a]\n"
         " a-1 [000] .... 119.255976:   8,0    m   N bfq 1 + 2 served\n"
         " a-1 [000] .... 119.255984:   8,0    D   R 2048 + 8 [a]\n"
         " a-1 [000] .... 119.255985:   8,0    Q  FF [a]\n"
         " a-1 [000] .... 119.255986:   8,0    Q   N 36 (12 00 ..) [smartctl]\n"
         " a-1 [000] .... 119.256274:   8,0 1a,0    Q  WS 4096 + 16 [a]\n"
         " a-1 [000] .... 119.257000:   8,0    C  WS 4096 + 16 [0]\n", PAIR),
        # Its option blk_classic.
        ("# tracer: blk\n#\n# DEV   CPU TIMESTAMP     PID ACT FLG\n"
         "#  |     |     |           |   |   |\n"
         "  8,0    1   119.255974123   697  Q   R 2048 + 8 [a]\n"
         "  8,0    1   119.255975000   697  P   N [a]\n"
         "  8,0    1   119.255976000     0  m   N bfq 1 + 2 served\n"
         "  8,0    0   119.255984000   697  D   R 2048 + 8 [a]\n"
         "  8,0    0   119.255985000   697  Q FWS [a]\n"
         "  8,0    1   119.256274123   697  Q  WS 4096 + 16 [a b]\n", PAIR),
        # trace-cmd report -R: the fields with their names.
        (" fio-2991 [000] 119.255974: block_rq_issue: dev=8388608 sector=2048 nr_sector=8"
         " bytes=4096 rwbs=R comm=fio cmd=\n"
         " fio-2991 [000] 119.255980: block_rq_issue: dev=8388608 sector=0 nr_sector=0 bytes=36"
         " rwbs=N comm=smartctl cmd=12\n"
         " fio-2991 [000] 119.256274: block_rq_issue: dev=8,0 sector=4096 nr_sector=16 bytes=8192"
         " rwbs=WS comm=fio cmd=\n", PAIR),
        (" a-1 [000] .... 1.000000: block_bio_queue: 8,0 R 2048 + 8 [a]\n"
         " a-1 [000] .... 1.000010: block_rq_issue: 8,0 R 4096 () 2048 + 8 [a]\n"
         " a-1 [000] .... 1.000300: block_bio_queue: 8,0 W 4096 + 16 [a]\n", PAIR)],
    "perf-trace": [(
        "     0.100 fio/697 block:block_rq_issue(dev: 8388608, sector: 2048, nr_sector: 8, bytes: "
        '4096, rwbs: "R", comm: "fio", cmd: "")\n'
        '     0.200 :0/0 block:block_rq_issue(dev: 8388608, rwbs: "FF", comm: "a", cmd: "")\n'
        "     0.250 ( 0.002 ms): fio/697 close(fd: 3)  = 0\n"
        "     0.400 k 0:1H/250 block:block_rq_issue(dev: 8388608, sector: 4096, nr_sector: 16, "
        'bytes: 8192, rwbs: "WS", comm: "kworker/0:1H", cmd: "")\n'
        '     0.500 :0/0 block:block_rq_complete(dev: 8388608, nr_sector: 8, rwbs: "R")\n',
        PAIR)],
    # Bits of the direction: 4 a read, 1 a write, 32 sync, 256 a flush. The second one is of the
    # next day.
    "lttng": [(
        "[23:59:59.999900000] (+?.?????????) host block_rq_issue: { cpu_id = 1 }, { dev = 8388608, "
        'sector = 2048, nr_sector = 8, bytes = 4096, tid = 7, rwbs = 4, cmd = [ ], comm = "a" }\n'
        "[23:59:59.999900100] (+0.000000100) host block_rq_issue: { cpu_id = 1 }, { dev = 8388608, "
        'sector = 0, nr_sector = 0, bytes = 0, tid = 7, rwbs = 256, cmd = [ ], comm = "a" }\n'
        '[23:59:59.999950000] (+0.000049900) host sched_switch: { cpu_id = 1 }, { prev_tid = 7 }\n'
        "[00:00:00.000200000] (+0.000250000) host block_rq_issue: { cpu_id = 1 }, { dev = 8388608, "
        'sector = 4096, nr_sector = 16, bytes = 8192, tid = 7, rwbs = 33, comm = "a" }\n', PAIR),
        ("[1700000000.000000100] block_bio_queue: { cpu_id = 1 }, { dev = 8388608, sector = 2048, "
         'nr_sector = 8, error = 0, rwbs = 4, tid = 7, comm = "a" }\n'
         "[1700000000.000300100] block_bio_queue: { cpu_id = 1 }, { dev = 8388608, sector = 4096, "
         'nr_sector = 16, error = 0, rwbs = 1, tid = 7, comm = "a" }\n', PAIR)],
    "xperf": [(
        "BeginHeader\n"
        "   DiskRead,  TimeStamp,     Process Name ( PID),   ThreadID, IrpPtr, ByteOffset, IOSize,"
        " ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri, FileName\n"
        "  DiskWrite,  TimeStamp,     Process Name ( PID),   ThreadID, IrpPtr, ByteOffset, IOSize,"
        " ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri, FileName\n"
        "  DiskReadInit,  TimeStamp,     Process Name ( PID),   ThreadID,             IrpPtr\n"
        "EndHeader\nOS Version: 6.0.6001, Trace Size: 1024KB, Events Lost: 0\n"
        "  P-DCStart,   0,  System (   4),  0\n"
        "  DiskReadInit,  100,  a (   4),  8, 0xfffffa8003\n"
        "  DiskRead,  250,  a, b.exe (   4),  8, 0xfffffa8003, 0x0000100000, 0x00001000,  150, 0, "
        '0x060043,  150,  3, "C:\\a, b"\n'
        "  Some-Provider/Task:Start,  260,  a (   4),  8\n"
        "  DiskFlush,  300,  a (   4),  8, 0xfffffa8003,  150, 0, 0x060043,  150,  3\n"
        "  DiskWrite,  500,  a (   4),  8, 0xfffffa8003, 0x0000200000, 0x00002000,  100, 0, "
        '0x060043,  100,  3, "C:\\$Mft"\n', PAIR)],
    "biosnoop": [(
        "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  QUE(ms) LAT(ms)\n"
        "0.001200    Web Content    1950   sda     W 4096       8192      0.10    0.80\n"
        "0.001000    kworker/0:1    1950   sda     R 2048       4096      0.00    1.00\n"
        "0.002000    ?              0      sda     W -1         0         0.00    1.00\n", PAIR),
        ("0.001000   a b   1950   nvme0n1   R  2048       4096       1.00\n"
         "0.001300   a     1950   nvme0n1   WS 4096       8192       1.00\n", PAIR),
        ("TIME(s)        COMM           PID    DISK      T SECTOR     BYTES  P  LAT(ms)\n"
         "0.001000       a     1950   sda       R 2048       4096       S  1.00\n"
         "0.001300       a     1950   sda       W 4096       8192       R  1.00\n", PAIR),
        # The first one was not seen as it entered the queue.
        ("TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  QUE(ms) LAT(ms)\n"
         "0.001000    a              1950   sda     R 2048       4096    -1.000   1.000\n"
         "0.001400    a              1950   sda     W 4096       8192     0.100   1.000\n", PAIR),
        # iosnoop -s, and -t.
        ("Tracing block I/O. Ctrl-C to end.\n"
         "STARTs         ENDs           COMM    PID    TYPE DEV      BLOCK   BYTES     LATms\n"
         "5982800.302061 5982800.302679 a b     1809   R    202,1    2048    4096       0.62\n"
         "5982800.302361 5982800.302842 a       1809   WS   202,1    4096    8192       0.42\n",
         PAIR),
        ("ENDs           COMM    PID    TYPE DEV      BLOCK        BYTES     LATms\n"
         "1.001000       a       1809   R    202,1    2048         4096       1.00\n"
         "1.002000       a       1809   W    202,1    4096         8192       1.70\n", PAIR)],
    "msr": [("128166372003061629,hm,1,Read,1048576,4096,151\n"
             "128166372003064629,hm,1,Write,2097152,8192,151\n", PAIR)],
    "spc": [("0,2048,4096,r,0.551706\n0,4096,8192,W,0.552006\n", PAIR),
            ("0,2048,4096,R,0.551706,1,more\n0,4096,8192,W,0.552006\n", PAIR)],
    "fiu": [("89966193305706 4892 syslogd 2048 8 R 6 0 531e779e8dd7\n"
             "89966193605706 4892 kworker a 4096 16 W 6 0 531e779e8dd8\n", PAIR)],
    "systor": [("Timestamp,Response,IOType,LUN,Offset,Size\n"
                "1456135200.013118000,0.001,R,0,1048576,4096\n"
                "1456135200.013200000,0.001,,0,0,4096\n"
                "1456135200.013418000,0.001,W,0,2097152,8192\n", PAIR),
               ("1456135200.013118000,0.001,R,0,1048576,4096\n"
                "1456135200.013418000,0.001,W,0,2097152,8192\n", PAIR)],
    "alibaba": [("0,R,1048576,4096,1577808000000046\n0,W,2097152,8192,1577808000000346\n", PAIR),
                ("device_id,opcode,offset,length,timestamp\n"
                 "0,R,1048576,4096,1577808000000046\n0,W,2097152,8192,1577808000000346\n", PAIR)],
    "tencent": [("1538323200,2048,8,0,1063\n1538323201,4096,16,1,1063\n",
                 [PAIR[0], (1000000, *PAIR[1][1:])])],
    "cloudphysics": [("version,time,op,size,lbn\n1,33898,28,4096,2048\n1,33898,35,0,0\n"
                      "1,33899,2a,8192,4096\n", [PAIR[0], (1000000, *PAIR[1][1:])]),
                     ("1,33898,28,4096,2048\n1,33899,2a,8192,4096\n",
                      [PAIR[0], (1000000, *PAIR[1][1:])])],
    # Places and sizes may be multiples of 512 in sectors, too.
    "mqsim": [("938513000 0 2048 8 1\n938813000 0 4096 16 0\n", PAIR),
              ("4851300 1 1048576 1024 0\n5151300 1 1049600 1024 1\n",
               [(0, W, 1 << 29, 1 << 19), (300, R, (1 << 29) + (1 << 19), 1 << 19)])],
    # Flags of DiskSim are hexadecimal.
    "disksim": [("13.191135 0 2048 8 1\n13.491135 0 4096 16 0\n", PAIR),
                ("13.191135 0 2048 8 1b\n13.491135 0 4096 16 0x1c\n", PAIR)],
    "femu": [("0.000 0 1048576 4096 1\n0.300 0 2097152 8192 0\n", PAIR)],
    "csv": [("ts_us,dev,op,offset,size\n1000.0,a,R,1048576,4096\n1300,a,W,2097152,8192\n", PAIR),
            ("ts_us,dev,op,size,offset\n1000.0,a,R,4096,1048576\n1300,a,W,8192,2097152\n", PAIR),
            ("# made by hand\n#time (ms);LBA;sectors;rwbs\n1;2048;8;RA\n1.3;4096;16;WS\n", PAIR),
            ("time_ms,op,Offset (KiB),size_sectors\n1,r,1024,8\n1.3,w,2048,16\n", PAIR),
            ('"is_read","timestamp_ns","Offset","Length"\n"1","1e6","1048576","4096"\n'
             '"0","1300000","2097152","8192"\n', PAIR),
            # What bpftrace prints around the lines of a script.
            ("Attaching 2 probes...\ntime_ns,dev,sector,sectors,op\n1000,8388608,2048,8,R\n"
             "2000,8388608,0,0,FWS\nLost 3 events\n301000,8388608,4096,16,WS\n^C\n\n"
             "@start[8, 2048]: 3\n", PAIR),
            ("Attached 1 probe\nnsecs,op,sector,bytes\n1000,R,2048,4096\n301000,W,4096,8192\n",
             PAIR),
            ("Time[s]|Type|Sector|Size\n0.001|Read|2048|8\n0.0013|Write|4096|16\n", PAIR),
            ("time_s\top\tlba\tbytes\n0.001\tR\t2048\t4096\n"
             "0.0013\tw\t4096\t8192\n0.002\tdiscard\t0\t4096\n",
             PAIR)],
}
