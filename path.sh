#!/usr/bin/env bash
# The environment of this repository: Python, its packages, and where the repository is.
#
#   ./path.sh COMMAND ...    run COMMAND in the environment, which is made first where it is missing or out of date
#   ./path.sh                the same without a command: says what the environment is
#   source path.sh           put a shell (bash or zsh) into the environment
#
# PYSPEECH_ENV   k2 (default: Python 3.10, torch 1.13, k2), torch2 (Python 3.11 to 3.14, torch 2.11, without k2), or
#                system (the Python on PATH, as it is). Where k2 cannot be had, torch2 is made, unless k2 is named.
# PYTHON         the interpreter to make the environment from; otherwise PATH, pyenv and uv are searched.
#
# Everything goes into .venv beside this file. .venv/NAME/complete, written last, holds where and from what the environment
# was made: without it the environment is made anew; where the requirements have changed since, it is brought up to date.

# ---- What a sourcing shell runs too: valid in bash and zsh, no set -e, no names left behind. ----

# The folder of file $1, which may be a link.
_pyspeech_folder() {
    local file=$1 link
    while [ -L "$file" ]; do
        link=$(readlink "$file") || return 1
        case $link in
            /*) file=$link ;;
            *) file=$(dirname "$file")/$link ;;
        esac
    done
    CDPATH='' cd -P -- "$(dirname "$file")" && pwd
}

if [ -n "${ZSH_VERSION:-}" ]; then
    eval 'PYSPEECH_ROOT=${${(%):-%x}:A:h}'
elif [ -n "${BASH_VERSION:-}" ]; then
    PYSPEECH_ROOT=$(_pyspeech_folder "${BASH_SOURCE[0]}")
else
    echo "path.sh: use bash or zsh to source it, or run ./path.sh COMMAND" >&2
    return 1 2>/dev/null || exit 1
fi
export PYSPEECH_ROOT

# The environment meant, on stdout; fails where PYSPEECH_ENV names none.
_pyspeech_name() {
    case ${PYSPEECH_ENV:-} in
        k2 | torch2 | system) echo "$PYSPEECH_ENV" ;;
        "") if [ -e "$PYSPEECH_ROOT/.venv/k2-unavailable" ]; then echo torch2; else echo k2; fi ;;
        *)
            echo "path.sh: PYSPEECH_ENV=$PYSPEECH_ENV: no such environment; there are k2, torch2 and system" >&2
            return 1 ;;
    esac
}

# What environment $1 is made from: its requirement files.
_pyspeech_ingredients() {
    cat "$PYSPEECH_ROOT/requirements/build.txt" "$PYSPEECH_ROOT/requirements/$1.txt"
    [ "$1" != k2 ] || cat "$PYSPEECH_ROOT/requirements/k2-wheel.txt"
}

# Whether environment $1 was once completed in this very place, as a virtual environment cannot be moved. The place may
# have another name: a mount, or a link to the .venv of another copy of the repository.
_pyspeech_stands() {
    [ -x "$PYSPEECH_ROOT/.venv/$1/bin/python" ] && [ -r "$PYSPEECH_ROOT/.venv/$1/complete" ] &&
        [ "$(head -n 1 "$PYSPEECH_ROOT/.venv/$1/complete")" -ef "$PYSPEECH_ROOT/.venv/$1" ]
}

# Whether environment $1 is complete and up to date.
_pyspeech_ready() {
    [ "$1" = system ] && return 0
    _pyspeech_stands "$1" && [ "$(tail -n +2 "$PYSPEECH_ROOT/.venv/$1/complete")" = "$(_pyspeech_ingredients "$1")" ]
}

# Leave the environments of this repository: PATH without them.
_pyspeech_leave() {
    local rest="$PATH:" kept="" entry
    while [ -n "$rest" ]; do
        entry=${rest%%:*}
        rest=${rest#*:}
        case $entry in
            "$PYSPEECH_ROOT"/.venv/*/bin) ;;
            *) kept="$kept:$entry" ;;
        esac
    done
    PATH=${kept#:}
    case ${VIRTUAL_ENV:-} in "$PYSPEECH_ROOT"/.venv/*) unset VIRTUAL_ENV ;; esac
}

# Put this shell into environment $1.
_pyspeech_enter() {
    local others
    _pyspeech_leave
    if [ "$1" != system ]; then
        PATH=$PYSPEECH_ROOT/.venv/$1/bin:$PATH
        export VIRTUAL_ENV="$PYSPEECH_ROOT/.venv/$1"
        unset PYTHONHOME
    fi
    # First, also where it stands behind another copy of the repository.
    others=":${PYTHONPATH:-}:"
    others=${others//":$PYSPEECH_ROOT:"/:}
    others=${others#:} && others=${others%:}
    PYTHONPATH=$PYSPEECH_ROOT${others:+:$others}
    # Without this, bash drops the name again after `PYSPEECH_ENV=NAME source path.sh`.
    unset PYSPEECH_ENV
    # matplotlib would put its font list into the home folder. Threads that wait for one another sleep: where others
    # compute on the same cores, those that spin make a training five to ten times as slow.
    export PATH PYTHONPATH PYSPEECH_ENV="$1" MPLCONFIGDIR="${MPLCONFIGDIR:-$PYSPEECH_ROOT/.cache/matplotlib}" \
        OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-PASSIVE}"
    # The MKL of torch 1.13 takes AMD's processors for ones without AVX2, which makes matrix products four times as slow.
    case $(cat /proc/cpuinfo 2>/dev/null) in
        *AuthenticAMD*avx2*) export MKL_DEBUG_CPU_TYPE="${MKL_DEBUG_CPU_TYPE:-5}" ;;
    esac
    # glibc gives the memory of every large tensor back at once and asks for it again: a third of the time of training a
    # convolutional network. It keeps up to 4 GiB of what is free, and takes all blocks from that.
    export MALLOC_MMAP_MAX_="${MALLOC_MMAP_MAX_:-0}" \
        MALLOC_TRIM_THRESHOLD_="${MALLOC_TRIM_THRESHOLD_:-4294967296}" MALLOC_TOP_PAD_="${MALLOC_TOP_PAD_:-67108864}"
}

if [ -n "${ZSH_VERSION:-}" ]; then
    case ${ZSH_EVAL_CONTEXT:-} in
        *:file*) ;;
        *) exec bash "$PYSPEECH_ROOT/path.sh" "$@" ;;
    esac
fi
if [ -n "${ZSH_VERSION:-}" ] || [ "${BASH_SOURCE[0]}" != "$0" ]; then
    _pyspeech_status=1
    if _pyspeech_env=$(_pyspeech_name); then
        if _pyspeech_ready "$_pyspeech_env"; then
            _pyspeech_enter "$_pyspeech_env"
            _pyspeech_status=0
        else
            echo "path.sh: environment $_pyspeech_env is not ready: run $PYSPEECH_ROOT/path.sh, then source again" >&2
        fi
    fi
    unset _pyspeech_env
    unset -f _pyspeech_folder _pyspeech_name _pyspeech_ingredients _pyspeech_stands _pyspeech_ready _pyspeech_leave _pyspeech_enter
    eval "unset _pyspeech_status; return $_pyspeech_status"
fi

# ---- From here on bash runs ./path.sh COMMAND. bash 3.2 has to understand it. ----

set -u
venvs=$PYSPEECH_ROOT/.venv

say() { echo "path.sh: $*" >&2; }
fail() { say "$@"; exit 1; }

# ---- Finding a Python ----

# Prints "3.10 ok", or "3.10 venv" where the modules that make environments are missing. Valid for any Python since 2.7.
probe='
import sys, platform, ctypes, ssl, zlib
if platform.python_implementation() != "CPython" or sys.maxsize < 2**32:
    sys.exit(1)
try:
    import ensurepip, venv
    state = "ok"
except ImportError:
    state = "venv"
print("%d.%d %s" % (sys.version_info[0], sys.version_info[1], state))'

# Interpreters that may have one of the versions $@, the best first, one a line.
candidates() {
    local version
    if [ -n "${PYTHON:-}" ]; then echo "$PYTHON"; fi
    for version; do type -aP "python$version"; done
    type -aP python3 python
    for version; do
        ls -d "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python \
            "$HOME/.pyenv/versions/$version".*/bin/python \
            "${UV_PYTHON_INSTALL_DIR:-$HOME/.local/share/uv/python}/cpython-$version".*/bin/python3 \
            "$venvs/python/cpython-$version".*/bin/python3 2>/dev/null
    done
}

# Sets python to an interpreter of one of the versions $@. It is run to find out: a shim of pyenv may exist and not run.
# Sets unfit to what kept an interpreter of the right version from being used.
find_python() {
    local candidate found
    python='' unfit=''
    while read -r candidate; do
        found=$("$candidate" -c "$probe" 2>/dev/null </dev/null) || found=none
        case " $* " in
            *" ${found% *} "*)
                if [ "${found#* }" = ok ]; then
                    python=$candidate
                    return 0
                fi
                unfit="$candidate cannot make environments: its modules venv and ensurepip are missing"
                unfit="$unfit (on Debian and Ubuntu: apt-get install python${found% *}-venv)" ;;
            *)
                if [ "$candidate" = "${PYTHON:-}" ]; then
                    say "PYTHON=$PYTHON is $(describe_found "$found"), not Python ${*// / or }; looking for another"
                fi ;;
        esac
    done < <(candidates "$@")
    return 1
}

describe_found() { case $1 in none) echo "no working Python" ;; *) echo "Python ${1% *}" ;; esac; }

# Sets python to a Python $1 that uv puts into .venv/python; where there is no uv, it is installed into .venv/uv.
fetch_python() {
    local uv log=$venvs/python.log
    : >"$log"
    uv=$(type -P uv) || uv=$venvs/uv/bin/uv
    if ! "$uv" --version >/dev/null 2>&1; then
        find_python 3.8 3.9 3.10 3.11 3.12 3.13 3.14 || return 1
        say "no Python $1 here: installing uv into .venv/uv to fetch one"
        rm -rf "$venvs/uv"
        uv=$venvs/uv/bin/uv
        "$python" -m venv "$venvs/uv" >>"$log" 2>&1 || return 1
        export PIP_USER=0
        "$venvs/uv/bin/python" -m pip install -r "$PYSPEECH_ROOT/requirements/uv.txt" >>"$log" 2>&1 || return 1
    fi
    say "fetching Python $1 into .venv/python with uv"
    export UV_PYTHON_INSTALL_BIN=0  # nothing outside the repository
    UV_PYTHON_INSTALL_DIR=$venvs/python "$uv" python install "$1" >>"$log" 2>&1 && find_python "$1"
}

# Sets python for environment $1, or problem to one line on why there is none.
obtain_python() {
    local versions=3.10 fetched=3.10 unfit_here
    if [ "$1" = torch2 ]; then versions="3.11 3.12 3.13 3.14" fetched=3.12; fi
    if [ "$1" = k2 ] && [ "$(uname -sm)" != "Linux x86_64" ]; then
        problem="k2 is for Linux on x86-64, this is $(uname -sm)"
        return 1
    fi
    # shellcheck disable=SC2086  # a list of versions
    find_python $versions && return 0
    unfit_here=$unfit
    fetch_python $fetched && return 0
    problem="found no Python ${versions// / or }, and could not fetch one (log: $venvs/python.log)"
    if [ -n "$unfit_here" ]; then problem=$unfit_here; fi
    return 1
}

# ---- One at a time ----

lock_code='
import fcntl, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)
seconds = 0
while True:
    try:
        fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if seconds % 15 == 0:
            print("path.sh: waiting for another process at work in %s (%d s)" % (sys.argv[1], seconds), file=sys.stderr)
        time.sleep(1)
        seconds += 1
        continue
    except OSError:
        pass  # a file system without locks: as good as it gets
    break'

# Wait for the lock on .venv; fails where there is no Python to take it with. It is the kernel's, held through the open
# file 9 by this shell and by what it starts: no kill leaves it behind, and an installation whose shell was killed keeps
# it for as long as it still writes.
lock() {
    local locker
    for locker in "${PYTHON:-}" "$python" python3 python ''; do
        if [ -n "$locker" ] && "$locker" -c 'import fcntl' 2>/dev/null; then break; fi
    done
    [ -n "$locker" ] || return 1
    "$locker" -c "$lock_code" "$venvs" || exit
}

# ---- Making an environment ----

# Run a part of the installation such that a signal can end it.
part() {
    "$@" &
    job=$!
    wait "$job"
}

# Make environment $1 with $python, or bring it up to date. Runs in the background, its output in the log; goes on to
# the end where only the shell that shows its progress is killed.
install() {
    local venv=$venvs/$1 job=''
    trap 'kill $job 2>/dev/null && wait $job; exit 143' TERM
    unset PYTHONPATH PYTHONHOME VIRTUAL_ENV PIP_TARGET PIP_PREFIX PIP_CONSTRAINT
    export PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONNOUSERSITE=1 TMPDIR="$venvs/tmp"
    rm -rf "$TMPDIR"
    mkdir "$TMPDIR" || return 1
    if _pyspeech_stands "$1"; then
        mv "$venv/complete" "$venv/complete.old" || return 1
    else
        echo "== making $venv with $python"
        rm -rf "$venv"
        part "$python" -m venv "$venv" || return 1
    fi
    if install_packages "$1" && { echo "$venv" && _pyspeech_ingredients "$1"; } >"$venv/complete.new"; then
        mv "$venv/complete.new" "$venv/complete"
        rm -f "$venv/complete.old"
    else
        # pip gave up in good order: an environment that was complete before is one still, though out of date.
        [ ! -e "$venv/complete.old" ] || mv "$venv/complete.old" "$venv/complete"
        return 1
    fi
}

install_packages() {
    local from=$PYSPEECH_ROOT/requirements
    pip() { part "$venvs/$env_name/bin/python" -m pip install --no-input --progress-bar off "$@"; }
    echo "== installing pip"
    pip -r "$from/build.txt" || return 1
    pip --no-build-isolation -r "$from/$1.txt" || return 1
    if [ "$1" = k2 ]; then pip --no-deps -r "$from/k2-wheel.txt" || return 1; fi
    echo "== importing the packages"
    export PYTHONPATH=$PYSPEECH_ROOT PYSPEECH_ENV=$1
    part "$venvs/$1/bin/python" -m pyspeech.compat
}

# What the installation of $1 is doing, from its log.
activity() {
    local line
    line=$(grep -E '^ *(== |Collecting |Downloading |Installing collected )' "$log" | tail -n 1)
    case $line in
        "== "*) echo "${line#== }" ;;
        *Collecting*) line=${line#*Collecting } && echo "looking for ${line%% *}" ;;
        *Downloading*)
            line=${line#*Downloading } && line=${line##*/}
            echo "downloading ${line%%-*} (${line##*(}; $(du -sm "$venvs/tmp" | cut -f 1) MB so far" ;;
        *Installing*)
            line=$(find "$venvs/$1"/lib/python*/site-packages -maxdepth 1 -name '*.dist-info' | wc -l)
            echo "unpacking; $((line)) packages so far" ;;
    esac 2>/dev/null
}

# Show what the installation of $1 (process $2) is doing: on a terminal in one changing line, elsewhere every 15 s.
show_progress() {
    local shown=0
    while kill -0 "$2" 2>/dev/null; do
        if [ -t 2 ]; then
            printf '\r\033[K%.79s' "path.sh: $1: $SECONDS s, $(activity "$1")" >&2
        elif [ $((SECONDS - shown)) -ge 15 ]; then
            shown=$SECONDS
            say "$1: $SECONDS s, $(activity "$1")"
        fi
        sleep 0.2
    done
    [ ! -t 2 ] || printf '\r\033[K' >&2
}

# Say in one line why the installation failed and what to do.
explain() {
    local reason no_network='[Cc]onnection(Error| refused| broken| aborted| reset)|Connect(ion)?(Refused|Reset)?Error'
    no_network="$no_network|NewConnection|unreachable|ame resolution|service not known|imeout|imed out|ProxyError"
    if grep -qE 'No space left on device|Disk quota exceeded' "$log"; then
        reason="the disk is full: free some space in $venvs and in pip's cache (pip cache dir)"
    elif grep -q 'DO NOT MATCH THE HASHES' "$log"; then
        reason="the package index has served another file than the requirements name: use another index"
    elif grep -qE 'CERTIFICATE_VERIFY_FAILED|SSLError' "$log"; then
        reason="the package index's certificate is not trusted: give pip the right one (PIP_CERT)"
    elif grep -qE "$no_network" "$log"; then
        reason="the package index cannot be reached: connect to the network, or name a proxy (https_proxy)"
        reason="$reason or a mirror (PIP_INDEX_URL)"
    else
        reason=$(grep -E '^(ERROR|Error|[A-Za-z]*Error|.* does not load)' "$log" | tail -n 1)
        reason="environment $1 could not be made: ${reason:-$(tail -n 1 "$log")}"
    fi
    say "$reason; then run the same command again"
    say "log: $log"
}

interrupted() {
    trap '' INT TERM HUP
    kill -TERM "$child" 2>/dev/null
    wait "$child" 2>/dev/null
    rm -rf "$venvs/tmp"
    echo >&2
    say "interrupted; the same command finishes environment $env_name"
    exit "$1"
}

check_disk() {
    local needed=$1 free
    free=$(df -Pk "$venvs" 2>/dev/null | awk 'NR == 2 { print int($4 / 1048576) }')
    if [ -n "$free" ] && [ "$free" -lt "$needed" ]; then
        fail "the disk is too full: $venvs takes $needed GB, $free GB are free; make room, then run it again"
    fi
}

# Make or update environment env_name with $python.
make_environment() {
    log=$venvs/$env_name.log
    if ! _pyspeech_stands "$env_name"; then check_disk "$([ "$env_name" = k2 ] && echo 6 || echo 9)"; fi
    say "making environment $env_name from $python, once; log: $log"
    SECONDS=0
    install "$env_name" >"$log" 2>&1 </dev/null &
    child=$!
    trap 'interrupted 129' HUP
    trap 'interrupted 130' INT
    trap 'interrupted 143' TERM
    show_progress "$env_name" "$child"
    if ! wait "$child"; then
        rm -rf "$venvs/tmp"
        explain "$env_name"
        exit 1
    fi
    trap - HUP INT TERM
    rm -rf "$venvs/tmp"
    say "environment $env_name is complete ($SECONDS s)"
}

# Sets env_name to the environment that PYSPEECH_ENV means, and makes it where it is not ready.
prepare() {
    local why='' locked=yes
    _pyspeech_leave
    { mkdir -p "$venvs" && : >>"$venvs/lock"; } 2>/dev/null ||
        fail "cannot write to $venvs: make the folder writable, and see that the disk is not full"
    exec 9>>"$venvs/lock"
    python=''
    lock || locked=no
    env_name=$(_pyspeech_name)  # another process may have finished meanwhile
    if ! _pyspeech_ready "$env_name"; then
        if ! obtain_python "$env_name"; then
            if [ -n "${PYSPEECH_ENV:-}" ] || [ "$env_name" != k2 ]; then fail "$problem; $advice"; fi
            why=$problem
            say "no environment k2: $why; torch2 takes its place (everything runs, without k2)"
            env_name=torch2
            _pyspeech_ready torch2 || obtain_python torch2 || fail "$problem; $advice"
        fi
        [ $locked = yes ] || lock
        _pyspeech_ready "$env_name" || make_environment
        if [ -n "$why" ]; then
            echo "$why" >"$venvs/k2-unavailable"
        elif [ "$env_name" = k2 ]; then
            rm -f "$venvs/k2-unavailable"
        fi
    fi
    exec 9>&-
}
advice="install one (apt-get install python3-venv, or uv), or name one: PYTHON=/path/to/python3"

# ---- Main ----

# One function, so that bash has read all of this file before a minute of work begins in which it may be edited.
main() {
    local argument named=no
    case ${1:-} in
        -h | --help)
            sed -n '2,/^$/s/^# \{0,1\}//p' "$PYSPEECH_ROOT/path.sh"
            exit 0 ;;
    esac
    env_name=$(_pyspeech_name) || exit 1
    if ! _pyspeech_ready "$env_name"; then
        prepare
    elif [ -z "${PYSPEECH_ENV:-}" ] && [ "$env_name" != k2 ]; then
        say "environment torch2, without k2: $(cat "$venvs/k2-unavailable"); PYSPEECH_ENV=k2 tries again"
    fi
    _pyspeech_enter "$env_name"

    if [ $# = 0 ]; then set -- python -m pyspeech.compat; fi
    if [ "$1" = pytest ]; then
        # All tests where the command names no file or folder, in whichever folder it is given: a process a core takes
        # files in turn, in the order of tests/conftest.py, unless the command says otherwise (-n 0).
        for argument; do if [ -e "${argument%%::*}" ]; then named=yes; fi; done
        if [ $named = no ]; then
            shift
            set -- "$@" "$PYSPEECH_ROOT/tests"
            if [ "$env_name" != system ]; then set -- -n auto --dist loadfile --no-loadscope-reorder "$@"; fi
            set -- pytest "$@"
        fi
    fi
    if ! type -P -- "$1" >/dev/null; then
        say "$1: no such command here, nor in environment $env_name"
        exit 127
    fi
    exec "$@"
}

main "$@"
