# SPDX-License-Identifier: GPL-2.0
"""What a job of fio may do: its options and engines.

A job file is data from someone else, and fio can run programs, open paths and talk to a network. So
what changes the load is ALLOWED, with the values that are known; what says where, how long and what
to log is DROPPED, since that is ours; all else is refused, also what a later fio may add.
"""
import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Kind:
    """The values of an option. @what: in words, @pattern: of all of them."""
    what: str
    pattern: str

    def fits(self, value: str) -> bool:
        """Return true if an option may have this value."""
        return bool(re.fullmatch(self.pattern, value, re.ASCII))


def words(text: str) -> Kind:
    """Return the kind of one of some words."""
    return Kind(f"one of {text.replace(' ', ', ')}", text.replace(" ", "|"))


def lists(kind: Kind, separator: str) -> Kind:
    """Return the kind of up to three values, for reads, writes and discards."""
    one = f"({kind.pattern})"
    return Kind(f"{kind.what}, or several for reads and writes",
                rf"(?=.*\w){one}?({separator}{one}?){{0,2}}")


# A number with so few digits that sums and products of it are finite.
DECIMAL = r"\d{0,6}\.?\d{1,6}"
_N = r"(0x[0-9a-fA-F]{1,16}|\d{1,15}(\.\d{1,9})?)([kmgtpKMGTP][iI]?[bB]?|[bB])?"
NUMBER = Kind("a number", _N)
SIGNED = Kind("a whole number", r"-?\d{1,9}")
NUMBERS = lists(NUMBER, ",")
RANGES = lists(Kind("a range, as in 4k-64k", f"{_N}[-:]{_N}"), "[,/]")
TIME = Kind("a time", r"\d{1,15}(\.\d{1,9})?(d|h|m|s|ms|us|msec|usec|sec)?")
SHARE = Kind("a percentage", r"\d{1,3}(\.\d{1,6})?%?")
PERCENTS = lists(Kind("a percentage", r"\d{1,3}%?"), ",")
BOOL, FLAG = Kind("0 or 1", "[01]"), Kind("0 or 1, or nothing", "[01]?")
CPUS = Kind("numbers of CPUs", r"\d{1,5}([-,:/]\d{1,5}){0,999}")
_SPLIT = rf"{_N}(/\d{{0,3}})?(:{_N}(/\d{{0,3}})?){{0,99}}"

# An option's names, by what its values are.
_ALLOWED = {
    Kind("read, write, rw, trim or trimwrite, or one of these after rand",
         rf"(readwrite|(rand)?(read|write|rw|trim|trimwrite))(:-?{_N})?"): "rw",
    Kind("an engine of fio", r"\S+"): "ioengine",
    NUMBERS: "bs ba rate rate_iops",
    RANGES: "bsrange",
    lists(Kind("sizes and their shares, as in 4k/60:64k/40", _SPLIT), ","): "bssplit",
    PERCENTS: "percentage_random",
    SHARE: "rwmixread rwmixwrite",
    NUMBER:
        "iodepth_batch iodepth_batch_complete_min iodepth_batch_complete_max iodepth_low "
        "fsync fdatasync write_barrier offset_align thinktime_blocks "
        "rate_cycle buffer_compress_percentage buffer_compress_chunk dedupe_percentage "
        "dedupe_working_set_percentage cpumask flow_id flow_sleep hipri_percentage "
        "sqthread_poll_cpu force_async",
    Kind("a number above 0", r"[1-9]\d{0,4}"): "numjobs",
    Kind("a number above 0, as in 32", rf"(?!0+(\.0*)?\D*$){_N}"): "iodepth",
    Kind("a size", rf"{_N}|{DECIMAL}%"): "size offset offset_increment",
    SIGNED: "flow",
    TIME: "thinktime thinktime_spin thinktime_iotime",
    BOOL:
        "randrepeat allrandrepeat serialize_overlap direct atomic buffered rate_ignore_thinktime "
        "scramble_buffers dedupe_global nonvectored uncached nowait thp softrandommap "
        "bs_is_seq_rand",
    FLAG:
        "bs_unaligned norandommap thread refill_buffers hipri fixedbufs registerfiles "
        "sqthread_poll userspace_reap",
    CPUS: "cpus_allowed numa_cpu_nodes",
    Kind("default, local, or bind, prefer or interleave and nodes",
         r"default|local|(bind|prefer|interleave):\d{1,5}([-,]\d{1,5}){0,99}"): "numa_mem_policy",
    words("shared split"): "cpus_allowed_policy",
    words("sequential identical"): "rw_sequencer",
    words("inline offload"): "io_submit_mode",
    words("tausworthe lfsr tausworthe64"): "random_generator",
    Kind("random, zipf, pareto, normal, zoned or zoned_abs, and its figures",
         r"(random|zipf|pareto|normal|zoned|zoned_abs)(:[0-9.,:/kmgtibKMGTIB%]{1,999})?"):
        "random_distribution",
    words("0 1 none random sequential noreuse"): "fadvise_hint",
    Kind("as in wait_before,write:8",
         rf"(wait_before|write|wait_after)(,(wait_before|write|wait_after)){{0,2}}:{_N}"):
        "sync_file_range",
    words("0 1 none sync dsync"): "sync",
    words("none short medium long extreme"): "write_hint",
    words("complete issue"): "thinktime_blocks_type",
    words("linear poisson"): "rate_process",
    words("repeat working_set"): "dedupe_mode",
    words("1000 1024"): "kb_base",
    # The others map a file, or need huge pages of the machine.
    words("malloc shm mmap mmapshared"): "mem",
    # So much more memory has each job.
    Kind("a size of at most 2m", r"\d{1,6}|\d{1,3}[kK]([iI]?[bB])?|[12][mM]([iI]?[bB])?"):
        "iomem_align",
    Kind('a number, or a "text" of letters', r'0x[0-9a-fA-F]{1,999}|\d{1,9}|"[\w ]{1,512}"'):
        "buffer_pattern",
    # Without privileges no priority can be raised.
    Kind("0 to 19", r"1?\d"): "nice",
    Kind("0 to 7", "[0-7]"): "prio",
    Kind("0, 2 or 3 (fio has no privilege for real-time priority)", "[023]"): "prioclass",
}
ALLOWED = {name: kind for kind, names in _ALLOWED.items() for name in names.split()}
# Which jobs run after which: fio does not get these, since we start its jobs so.
ORDER = {"stonewall": FLAG, "wait_for": Kind("the name of a job", r"[^\0-\x1f\x7f]{1,255}")}

# The engines that do I/O on the drive through the block layer, and the options of each.
ENGINES = {
    "libaio": {"userspace_reap", "nowait"},
    "io_uring": {"hipri", "fixedbufs", "registerfiles", "sqthread_poll", "sqthread_poll_cpu",
                 "nonvectored", "uncached", "nowait", "force_async"},
    "pvsync2": {"hipri", "hipri_percentage", "uncached", "nowait"},
    "mmap": {"thp"},
    "psync": set(), "sync": set(), "pvsync": set(), "vsync": set(), "posixaio": set()}
OF_ENGINES = set().union(*ENGINES.values())

_ENGINES_REFUSED = {
    "it does no I/O on the drive":
        "cpuio null cpp_null filecreate filestat filedelete filexattr dircreate dirstat dirdelete "
        "ftruncate falloc e4defrag",
    "it runs a program": "exec",
    "it loads a library": "external",
    "its I/O is that of pipes": "splice",
    "it talks to a network":
        "net netsplice rdma rados rbd http gfapi gfapi_async glusterfs nbd nfs libhdfs libiscsi "
        "nvme-tcp dfs ime_psync ime_psyncv ime_aio librpma_apm_client librpma_apm_server "
        "librpma_gpspm_client librpma_gpspm_server",
    "it does not go through the scheduler":
        "sg io_uring_cmd mtd dev-dax libpmem pmemblk libzbc xnvme libblkio spdk cuda libcufile "
        "libhipfile fusion-aw-sync",
    "Linux does not have it": "windowsaio solarisaio",
}
ENGINES_REFUSED = {name: reason for reason, names in _ENGINES_REFUSED.items()
                   for name in names.split()}

# Options that are ours: where, for how long, what is logged and reported.
DROPPED = set("""
    description name filename lockfile directory filename_format unique_filename opendir nrfiles
    openfiles filesize file_size file_service_type file_append fallocate create_serialize
    create_fsync create_on_open create_only allow_file_create allow_mounted_write pre_read overwrite
    unlink unlink_each_loop invalidate fill_device

    runtime ramp_time ramp_size time_based loops io_size number_ios startdelay
    end_fsync fsync_on_close
    exitall exit_what exitall_on_error continue_on_error ignore_error error_dump
    steadystate steadystate_duration steadystate_ramp_time steadystate_check_interval
    max_latency rate_min rate_iops_min

    write_iolog write_bw_log write_iops_log write_lat_log write_hist_log bwavgtime iopsavgtime
    log_entries log_avg_msec log_window_value log_max_value log_hist_msec log_hist_coarseness
    log_offset log_prio log_issue_time log_compression log_compression_cpus log_store_compressed
    log_unix_epoch log_alternate_epoch log_alternate_epoch_clock_id per_job_logs
    block_error_percentiles group_reporting new_group stats clat_percentiles lat_percentiles
    slat_percentiles percentile_list significant_figures disk_util gtod_reduce gtod_cpu disable_lat
    disable_clat disable_slat disable_bw_measurement unified_rw_reporting unit_base clocksource

    randseed zero_buffers do_verify experimental_verify rwmixcycle threads flow_watermark
    """.split())
# So does fio name all options that verify data.
VERIFY = "verify"

_REFUSED = {
    "it changes the depth until a latency is met, and then ends":
        "latency_target latency_window latency_percentile latency_run",
    "it ends when each place was written": "sprandom spr_op spr_num_regions spr_cs",
    "it replays a trace":
        "read_iolog read_iolog_chunked replay_no_stall replay_redirect replay_scale replay_align "
        "replay_time_scale replay_skip merge_blktrace_file merge_blktrace_scalars "
        "merge_blktrace_iters",
    "it runs elsewhere": "client",
    "it runs a program": "exec_prerun exec_postrun",
    "it changes the scheduler": "ioscheduler",
    "it changes the cgroup": "cgroup cgroup_nodelete cgroup_weight",
    "it changes the user": "uid gid",
    "it is another load than the job file's": "profile",
    "it takes memory of the machine": "lockmem hugepage-size",
    "fio has no privilege for real-time priority":
        "cmdprio_percentage cmdprio_class cmdprio cmdprio_bssplit",
    "zones are not supported":
        "zonemode zonesize zonecapacity zonerange zoneskip read_beyond_wp max_open_zones "
        "job_max_open_zones ignore_zone_limits zone_reset_threshold zone_reset_frequency "
        "recover_zbd_write_error",
    "it discards what was verified, and nothing is":
        "trim_percentage trim_verify_zero trim_backlog trim_backlog_batch",
    "it places data by hints of the drive":
        "fdp fdp_pli fdp_pli_select dataplacement plids plid_select dp_scheme",
    "it belongs to an engine that does not go through the scheduler":
        "num_range cmd_type md_per_io_size pi_act pi_chk apptag apptag_mask readfua writefua "
        "write_mode verify_mode xnvme_async xnvme_sync xnvme_admin xnvme_dev_nsid "
        "xnvme_dev_subnqn xnvme_mem xnvme_iovec libblkio_driver libblkio_path "
        "libblkio_pre_connect_props libblkio_num_entries libblkio_queue_size "
        "libblkio_pre_start_props libblkio_vectored libblkio_write_zeroes_on_trim "
        "libblkio_wait_mode libblkio_force_enable_completion_eventfd cuda_io gpu_dev_ids",
    "it talks to a network":
        "hostname port listen bindname interface protocol nodelay pingpong ttl serverip uri "
        # Those below are of engines that fio need not have.
        "nfs_url rbdname clustername clientname pool busy_poll touch_objects conf volume brick "
        "namenode hdfsdirectory hdfs_use_direct single_instance chunk_size svcl cont object_class "
        "http_host http_user http_pass http_mode http_verbose http_object_mode https "
        "http_s3_key http_s3_keyid http_s3_region http_s3_security_token http_s3_storage_class "
        "http_s3_sse_customer_key http_s3_sse_customer_algorithm http_swift_auth_token",
    "it belongs to an engine that does no I/O on the drive":
        "cpuload cpuchunks cpumode exit_on_io_done",
}
REFUSED = {name: reason for reason, names in _REFUSED.items() for name in names.split()}
# Values with which these are as if they were not there.
OFF = ("0", "none")

ALIASES = {
    "readwrite": "rw", "blocksize": "bs", "blockalign": "ba", "blocksize_range": "bsrange",
    "blocksize_unaligned": "bs_unaligned", "iodepth_batch_submit": "iodepth_batch",
    "iodepth_batch_complete": "iodepth_batch_complete_min", "fileoffset": "offset",
    "io_limit": "io_size", "fill_fs": "fill_device", "nr_files": "nrfiles", "timeout": "runtime",
    "iomem": "mem", "mem_align": "iomem_align", "wait_for_previous": "stonewall",
    "ratemin": "rate_min",
    "ratecycle": "rate_cycle", "disable_bw": "disable_bw_measurement", "ss": "steadystate",
    "ss_dur": "steadystate_duration", "ss_ramp": "steadystate_ramp_time"}


# Options that need no value, and so take none from the next word of a command line.
FLAGS = {name for name, kind in (ALLOWED | ORDER).items() if kind is FLAG} | set(
    "time_based verify_only exitall exitall_on_error new_group group_reporting zero_buffers"
    .split())


def meant(name: str, value: str) -> tuple[str, str]:
    """Return an option's own name, and its value by the name that the engine has."""
    name = ALIASES.get(name, name)
    # fio looks no further.
    if name == "ioengine" and value.startswith(("linuxaio", "aio")):
        value = "libaio"
    return name, value


def kind_of(name: str) -> Kind | None:
    """Return what the values of an option that is kept are; None if it is not kept."""
    return ALLOWED.get(name) or ORDER.get(name)


def refusal(name: str, value: str) -> str:
    """Return why an option is refused; "" if it is not."""
    if name == "ioengine":
        return engine_refusal(value)
    if name == "io_submit_mode" and value == "offload":
        return "fio does not end with it"
    if kind_of(name) or name in DROPPED or name.startswith(VERIFY):
        return ""
    return REFUSED.get(name, "it is not known here")


def off(name: str, value: str) -> bool:
    """Return true if an option that is refused is off, and so as if it were not there."""
    return name in REFUSED and value in OFF


def engine_refusal(name: str) -> str:
    """Return why an engine is refused; "" if it is not."""
    if name in ENGINES:
        return ""
    external = ":" in name or "/" in name
    return ENGINES_REFUSED.get("external" if external else name, "it is not known here")
