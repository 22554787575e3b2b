# Installs what a script needs, after printing all of it. Source this file; then:
#
#   need PROGRAM PACKAGE SIZE WHY   adds the Debian package to the list, if the program is missing
#   fetch NAME SIZE WHY             adds something that the script fetches itself
#   install_needed                  prints the list, and installs its packages with one call of apt-get
#
# SIZE is what a bare Debian 12 needs on disk, dependencies included; empty if unknown.

needed_packages=()
needed_lines=()

need() {
    command -v "$1" >/dev/null && return
    needed_packages+=("$2")
    fetch "$2" "$3" "$4"
}

fetch() {
    needed_lines+=("$1${2:+ ($2)}: $3")
}

install_needed() {
    [ ${#needed_lines[@]} -gt 0 ] || return 0
    echo "$(basename "$0") needs these, which are missing here (sizes with all dependencies):"
    printf '  %s\n' "${needed_lines[@]}"
    needed_lines=()
    [ ${#needed_packages[@]} -gt 0 ] || return 0
    local packages=("${needed_packages[@]}")
    needed_packages=()
    if ! command -v apt-get >/dev/null; then
        echo "there is no apt-get here; install these and run it again: ${packages[*]}" >&2
        exit 1
    elif [ "$(id -u)" != 0 ]; then
        echo "only root can install packages; run as root: apt-get install ${packages[*]}" >&2
        exit 1
    fi
    apt-get update -qq
    # apt-get knows the exact size, and answers its own question with no.
    LC_ALL=C apt-get install --assume-no "${packages[@]}" 2>/dev/null | grep 'disk space' || true
    apt-get install -y -qq "${packages[@]}" >/dev/null
}
