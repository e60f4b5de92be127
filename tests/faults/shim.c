/* Counts, breaks and records what a process does to the files of one folder.
 *
 * Loaded with LD_PRELOAD. `shim_set` says what goes wrong at the n-th operation, `shim_trace` keeps
 * every operation with its data. The wal-index (`-shm`) is left out: SQLite makes it again.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { NOTHING, DIE, DIE_HALFWAY, FAIL_ONCE, FAIL_FROM, FAIL_HALFWAY };

static char folder[4096];
static size_t folder_length;
static long count, nth;
static int mode, error, trace = -1;

void shim_set(const char *path, int mode_, long nth_, int error_) {
    snprintf(folder, sizeof folder, "%s", path);
    folder_length = strlen(folder);
    mode = mode_, nth = nth_, error = error_, count = 0;
}

/* The fault is over; counting goes on. */
void shim_lift(void) { mode = NOTHING; }

long shim_count(void) { return count; }

void shim_trace(int fd) { trace = fd; }

static void put(const void *data, size_t length) {
    while (length) {
        ssize_t done = syscall(SYS_write, trace, data, length);
        if (done <= 0) return;
        data = (const char *)data + done, length -= done;
    }
}

static void record(char kind, const char *a, const char *b, int64_t offset, const void *data,
                   size_t length) {
    if (trace < 0) return;
    uint32_t sizes[3] = {strlen(a), strlen(b), length};
    put(&kind, 1), put(sizes, sizeof sizes), put(&offset, sizeof offset);
    put(a, sizes[0]), put(b, sizes[1]), put(data, length);
}

void shim_mark(const char *text) { record('m', text, "", 0, "", 0); }

static int watched(const char *path) {
    size_t length = strlen(path);
    if (!folder_length || strncmp(path, folder, folder_length)) return 0;
    if (path[folder_length] != '/' && path[folder_length]) return 0;
    return length < 4 || strcmp(path + length - 4, "-shm");
}

static int path_of(int fd, char *path) {
    char link[64];
    if (!folder_length) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, 4095);
    path[length < 0 ? 0 : length] = 0;
    return watched(path);
}

/* The absolute path that a call with a folder's descriptor means. */
static int path_at(int fd, const char *name, char *path) {
    if (!folder_length) return 0;
    if (*name == '/') {
        snprintf(path, 4096, "%s", name);
    } else {
        if (fd == AT_FDCWD) {
            if (!getcwd(path, 4095)) return 0;
        } else if (!path_of(fd, path)) {
            return 0;
        }
        size_t length = strlen(path);
        snprintf(path + length, 4096 - length, "/%s", name);
    }
    return watched(path);
}

static void die(void) { syscall(SYS_kill, getpid(), SIGKILL); }

/* One more operation: 0 goes on, 1 does half of it, -1 fails with errno. */
static int boundary(int is_write) {
    count++;
    if (mode == DIE && count == nth) die();
    if (mode == DIE_HALFWAY && count == nth) {
        if (is_write) return 1;
        die();
    }
    if (mode == FAIL_HALFWAY && count == nth && is_write) {
        mode = FAIL_ONCE, nth++; /* the rest of the write */
        return 1;
    }
    if (((mode == FAIL_ONCE || mode == FAIL_HALFWAY) && count == nth) ||
        (mode == FAIL_FROM && count >= nth)) {
        errno = error;
        return -1;
    }
    return 0;
}

static ssize_t write_at(int fd, const void *data, size_t length, int64_t offset) {
    char path[4096];
    if (path_of(fd, path)) {
        int what = boundary(1);
        if (what < 0) return -1;
        if (what > 0) length = length > 1 ? length / 2 : length;
        int64_t place = offset >= 0 ? offset : lseek(fd, 0, SEEK_CUR);
        record('w', path, "", place, data, length);
        if (what > 0 && mode == DIE_HALFWAY) {
            syscall(SYS_pwrite64, fd, data, length, place);
            die();
        }
    }
    return offset >= 0 ? syscall(SYS_pwrite64, fd, data, length, offset)
                       : syscall(SYS_write, fd, data, length);
}

ssize_t write(int fd, const void *data, size_t length) { return write_at(fd, data, length, -1); }

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) {
    return write_at(fd, data, length, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset) {
    return write_at(fd, data, length, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int number) {
    ssize_t total = 0;
    char path[4096];
    if (!path_of(fd, path)) return syscall(SYS_writev, fd, parts, number);
    for (int i = 0; i < number; i++) {
        ssize_t done = write(fd, parts[i].iov_base, parts[i].iov_len);
        if (done < 0) return total ? total : -1;
        total += done;
    }
    return total;
}

/* Nothing here survives or loses a power cut, so no disk is waited for. */
static int sync_file(int fd, long number) {
    char path[4096];
    if (!path_of(fd, path)) return syscall(number, fd);
    if (boundary(0)) return -1;
    record('s', path, "", 0, "", 0);
    return 0;
}

int fsync(int fd) { return sync_file(fd, SYS_fsync); }

int fdatasync(int fd) { return sync_file(fd, SYS_fdatasync); }

static int cut(int fd, int64_t length) {
    char path[4096];
    if (path_of(fd, path)) {
        if (boundary(0)) return -1;
        record('t', path, "", length, "", 0);
    }
    return syscall(SYS_ftruncate, fd, length);
}

int ftruncate(int fd, off_t length) { return cut(fd, length); }

int ftruncate64(int fd, off64_t length) { return cut(fd, length); }

static int open_at(int at, const char *name, int flags, mode_t rights) {
    char path[4096];
    struct stat now;
    if ((flags & (O_CREAT | O_TRUNC)) && !(flags & O_DIRECTORY) && path_at(at, name, path)) {
        int is_new = stat(path, &now) != 0;
        if (is_new ? flags & O_CREAT : (flags & O_TRUNC) && !(flags & O_EXCL) && now.st_size) {
            if (boundary(0)) return -1;
            record(is_new ? 'c' : 'z', path, "", 0, "", 0);
        }
    }
    return syscall(SYS_openat, at, name, flags, rights);
}

#define RIGHTS(flags, last)                                \
    mode_t rights = 0;                                     \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {               \
        va_list rest;                                      \
        va_start(rest, last);                              \
        rights = va_arg(rest, int);                        \
        va_end(rest);                                      \
    }

int open(const char *name, int flags, ...) {
    RIGHTS(flags, flags)
    return open_at(AT_FDCWD, name, flags, rights);
}

int open64(const char *name, int flags, ...) {
    RIGHTS(flags, flags)
    return open_at(AT_FDCWD, name, flags, rights);
}

int openat(int at, const char *name, int flags, ...) {
    RIGHTS(flags, flags)
    return open_at(at, name, flags, rights);
}

int openat64(int at, const char *name, int flags, ...) {
    RIGHTS(flags, flags)
    return open_at(at, name, flags, rights);
}

/* What changes a name; a call that would fail anyway is no operation. */
static int change(char kind, int at, const char *name) {
    char path[4096];
    struct stat now;
    if (!path_at(at, name, path) || (lstat(path, &now) == 0) == (kind == 'd')) return 0;
    if (boundary(0)) return -1;
    record(kind, path, "", 0, "", 0);
    return 0;
}

int mkdir(const char *name, mode_t rights) {
    if (change('d', AT_FDCWD, name)) return -1;
    return syscall(SYS_mkdir, name, rights);
}

int unlink(const char *name) {
    if (change('u', AT_FDCWD, name)) return -1;
    return syscall(SYS_unlink, name);
}

int rmdir(const char *name) {
    if (change('u', AT_FDCWD, name)) return -1;
    return syscall(SYS_rmdir, name);
}

int unlinkat(int at, const char *name, int flags) {
    if (change('u', at, name)) return -1;
    return syscall(SYS_unlinkat, at, name, flags);
}

int renameat(int from_at, const char *from, int to_at, const char *to) {
    char old[4096], new[4096];
    if (path_at(from_at, from, old) && path_at(to_at, to, new)) {
        if (boundary(0)) return -1;
        record('r', old, new, 0, "", 0);
    }
    return syscall(SYS_renameat, from_at, from, to_at, to);
}

int rename(const char *from, const char *to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }
