// Waits until a time of day, by the clock of the node: a library that programs of a node load before their C library.
//
// The kernel's own waits go by the machine's clock. Each function here takes the time of day for one of the node's, waits until
// that moment by the steady clock, and looks again when it has waited: the node's clock may have been set meanwhile. Where a
// program has no stand-in (see image.rs), nothing is changed. Nor where its C library cannot wait by the steady clock: musl, which
// reckons by the stand-in itself how long a wait is, and glibc before 2.30.
//
// Owns the waits. It is linked with no library, so that it fits into any C library's program; what it needs is looked up in the
// objects that the program has loaded, by their hash tables (System V ABI, "Hash Table"; gnu: DT_GNU_HASH).

#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>

typedef int64_t nanoseconds;

#define SECOND_NS 1000000000LL
// The longest wait after which the node's clock is looked at again, and the longest of one that then returns to its caller: a
// wait for a condition may end without a reason (POSIX, pthread_cond_timedwait), but not often.
#define LOOK_AGAIN_NS (1 * SECOND_NS)
#define RETURN_AFTER_NS (10 * SECOND_NS)

// The pages of a stand-in and its shift; page.rs says how they lie.
#define PAGE_BYTES 4096
#define SHIFT_PAGE 2
struct shift {
    uint32_t sequence;
    uint32_t unused;
    nanoseconds offset, reference;
    int64_t rate;
};

// ---- The node's clock.

// The shift of this program's clock; null where it has no stand-in. MARKER is defined by whoever builds this.
static const struct shift *shift_page(void) {
    const char *image = (const char *)getauxval(AT_SYSINFO_EHDR);
    if (!image || memcmp(image + EI_PAD, MARKER, sizeof MARKER - 1) != 0)
        return 0;
    return (const struct shift *)(image + SHIFT_PAGE * PAGE_BYTES);
}

static struct shift shift_now(const struct shift *page) {
    const volatile struct shift *shared = page;
    for (;;) {
        uint32_t sequence = __atomic_load_n(&page->sequence, __ATOMIC_ACQUIRE);
        struct shift seen = {sequence, 0, shared->offset, shared->reference, shared->rate};
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (!(sequence & 1) && __atomic_load_n(&page->sequence, __ATOMIC_RELAXED) == sequence)
            return seen;
    }
}

// The kernel's clocks, past the stand-in.
static nanoseconds kernel_ns(long clock) {
    struct timespec now;
    long answer;
    __asm__ volatile("syscall" : "=a"(answer) : "a"(SYS_clock_gettime), "D"(clock), "S"(&now) : "rcx", "r11", "memory");
    return now.tv_sec * SECOND_NS + now.tv_nsec;
}

static nanoseconds shown_ns(struct shift shift, nanoseconds machine) {
    __int128 gained = ((__int128)(machine - shift.reference) * shift.rate) >> 32;
    return machine + shift.offset + (nanoseconds)gained;
}

// How long it is until the node's clock shows `deadline`, and `most` where it is longer.
static nanoseconds left_ns(struct shift shift, nanoseconds deadline, nanoseconds most) {
    nanoseconds to_show = deadline - shown_ns(shift, kernel_ns(CLOCK_REALTIME));
    if (to_show <= 0)
        return 0;
    if (!shift.rate)
        return to_show < most ? to_show : most;
    // A clock that stands still or runs backwards never gets there.
    double speed = 1.0 + (double)shift.rate / 4294967296.0;
    double left = speed > 0.0 ? (double)to_show / speed : (double)most;
    return left < (double)most ? (nanoseconds)left + 1 : most;
}

static int is_valid(const struct timespec *time) {
    return time && time->tv_nsec >= 0 && time->tv_nsec < SECOND_NS && time->tv_sec >= 0 &&
           time->tv_sec < 9000000000LL;
}

static nanoseconds in_ns(const struct timespec *time) { return time->tv_sec * SECOND_NS + time->tv_nsec; }

static struct timespec in_timespec(nanoseconds time) {
    return (struct timespec){time / SECOND_NS, time % SECOND_NS};
}

// Whether a time is meant of the time of day, where only the object that is waited for knows: it is nearer to that than to
// the time since the machine's start.
static int is_of_day(struct shift shift, nanoseconds deadline) {
    nanoseconds from_day = deadline - shown_ns(shift, kernel_ns(CLOCK_REALTIME));
    nanoseconds from_start = deadline - kernel_ns(CLOCK_MONOTONIC);
    return (from_day < 0 ? -from_day : from_day) < (from_start < 0 ? -from_start : from_start);
}

// ---- The functions of the same name behind this library.

struct wanted {
    const char *name;
    // Objects come in the order in which they were loaded; what lies in front of this library may call it.
    int is_behind;
    void *found;
};

// Where this library begins.
extern const char __ehdr_start __attribute__((visibility("hidden")));

static const void *in_object(struct dl_phdr_info *info, const ElfW(Dyn) * entry, const char *name) {
    const ElfW(Sym) *symbols = 0;
    const char *strings = 0;
    const uint32_t *gnu = 0, *old = 0;
    const uint16_t *versions = 0;
    for (; entry->d_tag != DT_NULL; entry++) {
        // Some C libraries write addresses in place of distances.
        const char *at = (const char *)(entry->d_un.d_ptr < info->dlpi_addr ? info->dlpi_addr + entry->d_un.d_ptr
                                                                            : entry->d_un.d_ptr);
        switch (entry->d_tag) {
        case DT_SYMTAB: symbols = (const void *)at; break;
        case DT_STRTAB: strings = at; break;
        case DT_GNU_HASH: gnu = (const void *)at; break;
        case DT_HASH: old = (const void *)at; break;
        case DT_VERSYM: versions = (const void *)at; break;
        }
    }
    if (!symbols || !strings)
        return 0;
#define IS_IT(number)                                                                                                  \
    (symbols[number].st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbols[number].st_info) == STT_FUNC &&                    \
     !(versions && versions[number] & 0x8000) &&                                                                       \
     !strcmp(strings + symbols[number].st_name, name))
    if (gnu) {
        uint32_t hash = 5381, buckets = gnu[0], first = gnu[1], words = gnu[2];
        for (const char *letter = name; *letter; letter++)
            hash = hash * 33 + (unsigned char)*letter;
        const uint32_t *bucket = (const uint32_t *)((const uint64_t *)(gnu + 4) + words), *chain = bucket + buckets;
        uint32_t number = buckets ? bucket[hash % buckets] : 0;
        for (; number >= first && number; number++) {
            uint32_t of_it = chain[number - first];
            if ((of_it | 1) == (hash | 1) && IS_IT(number))
                return (const char *)info->dlpi_addr + symbols[number].st_value;
            if (of_it & 1)
                break;
        }
    } else if (old) {
        for (uint32_t number = 1; number < old[1]; number++)
            if (IS_IT(number))
                return (const char *)info->dlpi_addr + symbols[number].st_value;
    }
    return 0;
}

static int look_in(struct dl_phdr_info *info, size_t size, void *data) {
    struct wanted *wanted = data;
    (void)size;
    if (!wanted->is_behind) {
        wanted->is_behind = info->dlpi_addr == (ElfW(Addr))&__ehdr_start;
        return 0;
    }
    for (int segment = 0; segment < info->dlpi_phnum; segment++) {
        if (info->dlpi_phdr[segment].p_type != PT_DYNAMIC)
            continue;
        const ElfW(Dyn) *dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[segment].p_vaddr);
        wanted->found = (void *)in_object(info, dynamic, wanted->name);
        if (wanted->found)
            return 1;
    }
    return 0;
}

static void *behind(const char *name) {
    struct wanted wanted = {name, 0, 0};
    dl_iterate_phdr(look_in, &wanted);
    return wanted.found;
}

// ---- The functions, as the program's C library has them: where each stands here, and null pointers for those it lacks.

#define FUNCTIONS(of)                                                                                                  \
    of(pthread_cond_timedwait) of(pthread_cond_clockwait) of(pthread_mutex_timedlock) of(pthread_mutex_clocklock)      \
    of(pthread_rwlock_timedrdlock) of(pthread_rwlock_clockrdlock) of(pthread_rwlock_timedwrlock)                       \
    of(pthread_rwlock_clockwrlock) of(sem_timedwait) of(sem_clockwait) of(clock_nanosleep) of(mq_timedsend)            \
    of(mq_timedreceive) of(timerfd_settime) of(timer_settime)

#define DECLARED(name) static __typeof__(&name) real_##name;
FUNCTIONS(DECLARED)

// Before the program runs: a lookup takes a lock of the loader, which a forked child or a signal's handler may never get.
__attribute__((constructor)) static void find_all(void) {
#define FOUND(name) real_##name = (__typeof__(&name))behind(#name);
    FUNCTIONS(FOUND)
}

// A function that came only with a library loaded later. The program may also have found it here where its C library has none.
#define NEED(name, without)                                                                                            \
    if (!real_##name && !(real_##name = (__typeof__(&name))behind(#name)))                                             \
    return without

static int without(void) {
    errno = ENOSYS;
    return -1;
}

// ---- Waits by the steady clock.

// Waits for at most `most` at a time, until the call `by_steady` with the time `until` has an answer or the node's clock shows
// `time`. Comes to an end without having returned where nothing is to be changed: then the caller asks the real function.
#define WAIT(is_ours, by_steady, in_vain, most, woken_early)                                                           \
    const struct shift *page = shift_page();                                                                           \
    while (page && is_valid(time) && (is_ours)) {                                                                      \
        nanoseconds left = left_ns(shift_now(page), in_ns(time), most);                                                \
        struct timespec until = in_timespec(kernel_ns(CLOCK_MONOTONIC) + left);                                        \
        int answer = (by_steady);                                                                                      \
        if (answer == EINVAL)                                                                                          \
            break;                                                                                                     \
        if (!(in_vain) || shown_ns(shift_now(page), kernel_ns(CLOCK_REALTIME)) >= in_ns(time))                         \
            return answer;                                                                                             \
        woken_early;                                                                                                   \
    }

// A mutex of a kind that lends its holder priority is waited for in the kernel by the time of day, whatever was asked for; the
// kind's place is part of glibc's binary interface (bits/struct_mutex.h).
static int lends_priority(const pthread_mutex_t *mutex) { return ((const int *)mutex)[4] & 32; }

static struct timespec by_machine(const struct shift *page, const struct timespec *time, nanoseconds most);

int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *time) {
    NEED(pthread_mutex_timedlock, ENOSYS);
    WAIT(real_pthread_mutex_clocklock,
         lends_priority(mutex) ? (until = by_machine(page, time, LOOK_AGAIN_NS), real_pthread_mutex_timedlock(mutex, &until))
                               : real_pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until),
         answer == ETIMEDOUT, LOOK_AGAIN_NS, )
    return real_pthread_mutex_timedlock(mutex, time);
}

int pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *time) {
    NEED(pthread_rwlock_timedrdlock, ENOSYS);
    WAIT(real_pthread_rwlock_clockrdlock, real_pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &until),
         answer == ETIMEDOUT, LOOK_AGAIN_NS, )
    return real_pthread_rwlock_timedrdlock(lock, time);
}

int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *time) {
    NEED(pthread_rwlock_timedwrlock, ENOSYS);
    WAIT(real_pthread_rwlock_clockwrlock, real_pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &until),
         answer == ETIMEDOUT, LOOK_AGAIN_NS, )
    return real_pthread_rwlock_timedwrlock(lock, time);
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left) {
    NEED(clock_nanosleep, ENOSYS);
    WAIT(clock == CLOCK_REALTIME && flags & TIMER_ABSTIME, real_clock_nanosleep(CLOCK_MONOTONIC, flags, &until, 0),
         answer == 0, LOOK_AGAIN_NS, )
    return real_clock_nanosleep(clock, flags, time, left);
}

int sem_timedwait(sem_t *semaphore, const struct timespec *time) {
    NEED(sem_timedwait, without());
    WAIT(real_sem_clockwait, real_sem_clockwait(semaphore, CLOCK_MONOTONIC, &until), answer && errno == ETIMEDOUT,
         LOOK_AGAIN_NS, )
    return real_sem_timedwait(semaphore, time);
}

// Whoever waits for a condition must look at it again before waiting on, so this returns to its caller.
int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *time) {
    NEED(pthread_cond_timedwait, ENOSYS);
    WAIT(real_pthread_cond_clockwait && is_of_day(shift_now(page), in_ns(time)),
         real_pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, &until), answer == ETIMEDOUT, RETURN_AFTER_NS,
         return 0)
    return real_pthread_cond_timedwait(condition, mutex, time);
}

// ---- Message queues and timers, which the kernel knows by the machine's time of day alone.

static struct timespec by_machine(const struct shift *page, const struct timespec *time, nanoseconds most) {
    return in_timespec(kernel_ns(CLOCK_REALTIME) + left_ns(shift_now(page), in_ns(time), most));
}

#define WAIT_IN_QUEUE(call)                                                                                            \
    const struct shift *page = shift_page();                                                                           \
    while (page && is_valid(time)) {                                                                                   \
        struct timespec until = by_machine(page, time, LOOK_AGAIN_NS);                                                 \
        __typeof__(call) answer = (call);                                                                              \
        int is_late = shown_ns(shift_now(page), kernel_ns(CLOCK_REALTIME)) >= in_ns(time);                             \
        if (answer != -1 || errno != ETIMEDOUT || is_late)                                                             \
            return answer;                                                                                             \
    }

int mq_timedsend(mqd_t queue, const char *message, size_t length, unsigned priority, const struct timespec *time) {
    NEED(mq_timedsend, without());
    WAIT_IN_QUEUE(real_mq_timedsend(queue, message, length, priority, &until))
    return real_mq_timedsend(queue, message, length, priority, time);
}

ssize_t mq_timedreceive(mqd_t queue, char *message, size_t length, unsigned *priority, const struct timespec *time) {
    NEED(mq_timedreceive, without());
    WAIT_IN_QUEUE(real_mq_timedreceive(queue, message, length, priority, &until))
    return real_mq_timedreceive(queue, message, length, priority, time);
}

// A timer is set once: one that stands when the clock is set goes off when it would have.

static struct itimerspec timer_by_machine(const struct shift *page, const struct itimerspec *timer) {
    struct itimerspec set = *timer;
    struct shift shift = shift_now(page);
    nanoseconds deadline = in_ns(&timer->it_value), now = kernel_ns(CLOCK_REALTIME);
    if (!is_of_day(shift, deadline))
        return set;
    // One that is past stays as far past: the kernel counts how often it has gone off since.
    nanoseconds past = shown_ns(shift, now) - deadline;
    set.it_value = past > 0 && past < now ? in_timespec(now - past) : by_machine(page, &timer->it_value, INT64_MAX / 4);
    return set;
}

static int is_set(const struct itimerspec *timer) {
    return timer && is_valid(&timer->it_value) && in_ns(&timer->it_value) != 0;
}

int timerfd_settime(int file, int flags, const struct itimerspec *timer, struct itimerspec *old) {
    NEED(timerfd_settime, without());
    const struct shift *page = shift_page();
    if (!page || !(flags & TFD_TIMER_ABSTIME) || !is_set(timer))
        return real_timerfd_settime(file, flags, timer, old);
    struct itimerspec set = timer_by_machine(page, timer);
    return real_timerfd_settime(file, flags, &set, old);
}

int timer_settime(timer_t number, int flags, const struct itimerspec *timer, struct itimerspec *old) {
    NEED(timer_settime, without());
    const struct shift *page = shift_page();
    if (!page || !(flags & TIMER_ABSTIME) || !is_set(timer))
        return real_timer_settime(number, flags, timer, old);
    struct itimerspec set = timer_by_machine(page, timer);
    return real_timer_settime(number, flags, &set, old);
}
