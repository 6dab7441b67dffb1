#!/bin/sh
# Make a replacement for python:3.13-slim-bookworm where no container registry can be reached: Debian by debootstrap, and
# a Python that is installed on this machine, for example by pyenv. It contains what the official image contains.
# Needs root, debootstrap, binutils and buildah.
#
#   make_base_image.sh PYTHON_PREFIX FOLDER [NAME]
#
# PYTHON_PREFIX  the folder with bin/python3.13, built on the same Debian release
# FOLDER         an empty folder for the files
# DEBIAN_MIRROR  in the environment: the URL of a Debian mirror
# NAME           the name of the image, localhost/python:3.13-slim-bookworm by default
set -eu
prefix=$1 root=$2/root name=${3:-localhost/python:3.13-slim-bookworm}
export STORAGE_DRIVER=${STORAGE_DRIVER:-vfs} BUILDAH_ISOLATION=chroot

# The packages that the official slim image adds to Debian, and the libraries of Python's extension modules.
debootstrap --variant=minbase \
    --include=ca-certificates,netbase,tzdata,libbz2-1.0,libexpat1,libffi8,liblzma5,libncursesw6,libreadline8,libsqlite3-0,libssl3,libuuid1,zlib1g \
    bookworm "$root" "$DEBIAN_MIRROR"
# The files that Debian's slim image leaves out.
find "$root/usr/share/doc" "$root/usr/share/man" "$root/usr/share/locale" "$root/usr/share/info" -mindepth 1 -delete
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/var/log/*.log "$root"/var/cache/debconf/*-old

# Python without tests, static libraries and bytecode, as in the official image; of site-packages only pip.
mkdir -p "$root/usr/local"
tar -C "$prefix" --create \
    --exclude='__pycache__' --exclude='*.a' --exclude='*.pyc' --exclude='test' --exclude='tests' --exclude='idle_test' \
    --exclude='lib/python3.*/site-packages' bin include lib | tar -C "$root/usr/local" --extract
for site in "$prefix"/lib/python3.*/site-packages; do
    target=$root/usr/local/lib/$(basename "$(dirname "$site")")/site-packages
    mkdir -p "$target"
    tar -C "$site" --create --exclude='__pycache__' pip $(cd "$site" && ls -d pip-*.dist-info) | tar -C "$target" --extract
done
find "$root/usr/local/lib" -name '*.so*' -type f -exec strip --strip-unneeded {} +
# Programs of the prefix name it in their first line; python and pip are enough.
rm -f "$root"/usr/local/bin/*
cp -P "$prefix"/bin/python3.* "$root/usr/local/bin/"
rm -f "$root"/usr/local/bin/*-config "$root"/usr/local/bin/*-gdb.py
version=$(basename "$(ls "$root"/usr/local/bin/python3.* | head -1)")
ln -s "$version" "$root/usr/local/bin/python3"
ln -s python3 "$root/usr/local/bin/python"
chown -R 0:0 "$root/usr/local"
chroot "$root" ldconfig
chroot "$root" python -c 'import bz2, ctypes, lzma, readline, sqlite3, ssl, sys, uuid, zlib; print(sys.version)'
find "$root/usr/local" -name __pycache__ -prune -exec rm -r {} +

container=$(buildah from scratch)
buildah add --quiet "$container" "$root" /
buildah config --env PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin --env LANG=C.UTF-8 --cmd python3 "$container"
buildah commit --quiet --rm "$container" "$name"
buildah images "$name"
