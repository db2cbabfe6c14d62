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
    return time && time->tv_nsec >= 0 && time->tv_nsec < SECOND_NS && time->tv_sec > -9000000000LL &&
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
    (symbols[number].st_shndx != SHN_UNDEF && !(versions && versions[number] & 0x8000) &&                              \
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
    if (info->dlpi_addr == (ElfW(Addr))&__ehdr_start)
        return 0;
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

static void *behind(void **known, const char *name) {
    void *found = __atomic_load_n(known, __ATOMIC_ACQUIRE);
    if (found)
        return found;
    struct wanted wanted = {name, 0};
    dl_iterate_phdr(look_in, &wanted);
    __atomic_store_n(known, wanted.found, __ATOMIC_RELEASE);
    return wanted.found;
}

// The function as the program's C library has it, as `real`; a null pointer where it has none.
#define BEHIND(real, name)                                                                                             \
    static void *known_##real;                                                                                         \
    __typeof__(&name) real = (__typeof__(&name))behind(&known_##real, #name)

// What the program asked for, as `real`: it could not have asked for what its C library does not have.
#define REAL(name)                                                                                                     \
    BEHIND(real, name);                                                                                                \
    if (!real)                                                                                                         \
    __builtin_trap()

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

int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *time) {
    REAL(pthread_mutex_clocklock);
    WAIT(clock == CLOCK_REALTIME, real(mutex, CLOCK_MONOTONIC, &until), answer == ETIMEDOUT, LOOK_AGAIN_NS, )
    return real(mutex, clock, time);
}

int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *time) {
    REAL(pthread_mutex_timedlock);
    BEHIND(steady, pthread_mutex_clocklock);
    WAIT(steady, steady(mutex, CLOCK_MONOTONIC, &until), answer == ETIMEDOUT, LOOK_AGAIN_NS, )
    return real(mutex, time);
}

int pthread_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *time) {
    REAL(pthread_rwlock_clockrdlock);
    WAIT(clock == CLOCK_REALTIME, real(lock, CLOCK_MONOTONIC, &until), answer == ETIMEDOUT, LOOK_AGAIN_NS, )
    return real(lock, clock, time);
}

int pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *time) {
    REAL(pthread_rwlock_timedrdlock);
    BEHIND(steady, pthread_rwlock_clockrdlock);
    WAIT(steady, steady(lock, CLOCK_MONOTONIC, &until), answer == ETIMEDOUT, LOOK_AGAIN_NS, )
    return real(lock, time);
}

int pthread_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *time) {
    REAL(pthread_rwlock_clockwrlock);
    WAIT(clock == CLOCK_REALTIME, real(lock, CLOCK_MONOTONIC, &until), answer == ETIMEDOUT, LOOK_AGAIN_NS, )
    return real(lock, clock, time);
}

int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *time) {
    REAL(pthread_rwlock_timedwrlock);
    BEHIND(steady, pthread_rwlock_clockwrlock);
    WAIT(steady, steady(lock, CLOCK_MONOTONIC, &until), answer == ETIMEDOUT, LOOK_AGAIN_NS, )
    return real(lock, time);
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left) {
    REAL(clock_nanosleep);
    WAIT(clock == CLOCK_REALTIME && flags & TIMER_ABSTIME, real(CLOCK_MONOTONIC, flags, &until, 0), answer == 0,
         LOOK_AGAIN_NS, )
    return real(clock, flags, time, left);
}

// These set errno.

int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *time) {
    REAL(sem_clockwait);
    WAIT(clock == CLOCK_REALTIME, real(semaphore, CLOCK_MONOTONIC, &until), answer && errno == ETIMEDOUT, LOOK_AGAIN_NS, )
    return real(semaphore, clock, time);
}

int sem_timedwait(sem_t *semaphore, const struct timespec *time) {
    REAL(sem_timedwait);
    BEHIND(steady, sem_clockwait);
    WAIT(steady, steady(semaphore, CLOCK_MONOTONIC, &until), answer && errno == ETIMEDOUT, LOOK_AGAIN_NS, )
    return real(semaphore, time);
}

// Whoever waits for a condition must look at it again before waiting on, so these return to their caller.

int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                           const struct timespec *time) {
    REAL(pthread_cond_clockwait);
    WAIT(clock == CLOCK_REALTIME, real(condition, mutex, CLOCK_MONOTONIC, &until), answer == ETIMEDOUT,
         RETURN_AFTER_NS, return 0)
    return real(condition, mutex, clock, time);
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *time) {
    REAL(pthread_cond_timedwait);
    BEHIND(steady, pthread_cond_clockwait);
    WAIT(steady && is_of_day(shift_now(page), in_ns(time)), steady(condition, mutex, CLOCK_MONOTONIC, &until),
         answer == ETIMEDOUT, RETURN_AFTER_NS, return 0)
    return real(condition, mutex, time);
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
    REAL(mq_timedsend);
    WAIT_IN_QUEUE(real(queue, message, length, priority, &until))
    return real(queue, message, length, priority, time);
}

ssize_t mq_timedreceive(mqd_t queue, char *message, size_t length, unsigned *priority, const struct timespec *time) {
    REAL(mq_timedreceive);
    WAIT_IN_QUEUE(real(queue, message, length, priority, &until))
    return real(queue, message, length, priority, time);
}

// A timer is set once: one that stands when the clock is set goes off when it would have.

static struct itimerspec timer_by_machine(const struct shift *page, const struct itimerspec *timer) {
    struct itimerspec set = *timer;
    if (is_of_day(shift_now(page), in_ns(&timer->it_value)))
        set.it_value = by_machine(page, &timer->it_value, INT64_MAX / 4);
    return set;
}

static int is_set(const struct itimerspec *timer) {
    return timer && is_valid(&timer->it_value) && in_ns(&timer->it_value) != 0;
}

int timerfd_settime(int file, int flags, const struct itimerspec *timer, struct itimerspec *old) {
    REAL(timerfd_settime);
    const struct shift *page = shift_page();
    if (!page || !(flags & TFD_TIMER_ABSTIME) || !is_set(timer))
        return real(file, flags, timer, old);
    struct itimerspec set = timer_by_machine(page, timer);
    return real(file, flags, &set, old);
}

int timer_settime(timer_t number, int flags, const struct itimerspec *timer, struct itimerspec *old) {
    REAL(timer_settime);
    const struct shift *page = shift_page();
    if (!page || !(flags & TIMER_ABSTIME) || !is_set(timer))
        return real(number, flags, timer, old);
    struct itimerspec set = timer_by_machine(page, timer);
    return real(number, flags, &set, old);
}
