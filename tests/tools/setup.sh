# Sourced at the top of the tree by tests/run.sh and examples/quickstart.sh: what a build needs, and the build.

# packages: installs what is missing from Debian's packages; elsewhere says what to install
packages() {
  missing=
  for p in g++ meson ninja-build pkg-config python3 libfmt-dev libyaml-cpp-dev libcli11-dev nlohmann-json3-dev doctest-dev libopenblas-dev libpcre2-dev libutf8proc-dev libgloo-dev cmake; do
    case $p in
      g++ | meson | pkg-config | python3 | cmake) command -v "$p" ;;
      ninja-build) command -v ninja ;;
      *) dpkg-query -W -f '${db:Status-Abbrev}' "$p" 2>/dev/null | grep '^ii' ;;
    esac >/dev/null || missing="$missing $p"
  done
  [ -n "$missing" ] || return 0
  if ! command -v apt-get >/dev/null; then
    echo "weft: not a Debian system: these may be missing (Debian's names):$missing" >&2
    return 0
  fi
  as_root=
  if [ "$(id -u)" != 0 ]; then
    as_root=sudo
    command -v sudo >/dev/null || { echo "weft: as root: apt-get install$missing" >&2; return 1; }
  fi
  echo "weft: installing from Debian's packages:$missing"
  # shellcheck disable=SC2086  # words on purpose
  { $as_root apt-get update -qq && $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing; } >/tmp/weft-apt.$$ 2>&1 ||
    { cat /tmp/weft-apt.$$ >&2; rm -f /tmp/weft-apt.$$; echo "weft: apt-get failed; needed:$missing" >&2; return 1; }
  rm -f /tmp/weft-apt.$$
}

# build FOLDER OPTIONS...: configures (again, so that new files are seen) and builds every target
build() {
  folder=$1
  shift
  if [ -f "$folder/build.ninja" ]; then set -- --reconfigure "$@"; fi
  meson setup "$folder" "$@" >"$folder.log" 2>&1 || { cat "$folder.log" >&2; rm -f "$folder.log"; echo "weft: meson setup $folder failed" >&2; return 1; }
  sed -n '/^  Features/,/^$/p' "$folder.log"
  rm -f "$folder.log"
  ninja -C "$folder" --quiet || { echo "weft: the build in $folder failed" >&2; return 1; }
}
