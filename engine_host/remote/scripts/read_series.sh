# Runs on another machine as long as somebody reads it: prints how busy it is, again and again. Any POSIX shell.
# Its data are two lines: a mark that begins each line of ours in what it prints, and the seconds between two.
LC_ALL=C
PATH=$PATH:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/cuda/bin
export LC_ALL PATH
IFS= read -r mark
IFS= read -r pause
exec </dev/null

gpus() {
    command -v nvidia-smi >/dev/null 2>&1 || return 0
    set -- nvidia-smi --format=csv,noheader,nounits \
        --query-gpu=index,memory.used,memory.total,utilization.gpu,temperature.gpu,power.draw,uuid,name
    # A driver that hangs must not hold up what can be read.
    if command -v timeout >/dev/null 2>&1; then timeout 10 "$@" 2>/dev/null; else "$@" 2>/dev/null; fi
    return 0
}

# Nobody reads it any more once its output is closed.
while printf '\n%s begin\n' "$mark" 2>/dev/null; do
    head -n 1 /proc/stat 2>/dev/null
    grep -E '^(MemTotal|MemAvailable):' /proc/meminfo 2>/dev/null
    gpus | sed 's/^/gpu /'
    printf '%s end\n' "$mark" 2>/dev/null || exit 0
    sleep "$pause"
done
exit 0
