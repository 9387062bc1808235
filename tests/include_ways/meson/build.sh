# weft is a subproject: subprojects/weft and a wrap that says what it provides.
set -e
cp "$here"/meson/meson.build "$here"/meson/meson_options.txt .
cp -r "$user" sources
mkdir subprojects
ln -s "$1" subprojects/weft
printf '[wrap-file]\ndirectory = weft\n\n[provide]\nweft = weft_dep\nweft-cuda = weft_cuda_dep\n' >subprojects/weft.wrap
meson setup out -Dcuda="$([ -n "${NVCC:-}" ] && echo true || echo false)"
ninja -C out
cp out/user .
if [ -n "${NVCC:-}" ]; then cp out/user_cuda .; fi
