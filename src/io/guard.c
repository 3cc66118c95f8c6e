/* guard.c: see guard.h.
 *
 * The handler can run in any thread, at any access to a mapping, while other threads add and remove mappings. It must
 * not take locks and may only call async-signal-safe functions. The table therefore consists of blocks of slots that
 * are never moved or freed. Each slot has a sequence number that is odd while the slot is written. A mapping cannot be
 * removed while a thread reads it, so its own slot does not change; a slot whose number is odd or changes during the
 * lookup belongs to another mapping and is skipped. The handler never waits or retries.
 *
 *     writer (under the lock)          handler
 *     sequence = odd                   before = sequence       acquire, pairs with the release of `even`
 *     start, end     release           start, end              acquire: a thread that reads a new value also reads the
 *                                                              odd number
 *     sequence = even release          sequence == before?
 *
 * An unreadable page is added to the mapping's list and replaced by a page of zeros; other pages are not changed.
 * The list consists of blocks that the handler maps on demand and that are freed with the slot. If no memory is left
 * for a block, the rest of the mapping counts as bad. The entry and the mark are stored before the zeros are mapped, so
 * a thread that reads zeros also finds the entry.
 */
#include "guard.h"
#include "thread.h"
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_POINTER_LOCK_FREE == 2 && ATOMIC_BOOL_LOCK_FREE == 2,
               "only async-signal-safe types");

enum { SLOTS = 1000 };

struct stki_guard {
    _Atomic uint64_t sequence;
    _Atomic uintptr_t start, end;      /* 0, 0: a free slot */
    _Atomic int broken;                /* enum broken */
    _Atomic(struct bad_pages *) pages; /* list of blocks, newest first */
    stki_guard *next_free;             /* guarded by lock */
};

enum broken { WHOLE, SOME_PAGES, REST };

enum { PAGES_IN_BLOCK = 500 };

struct bad_pages {
    struct bad_pages *next;
    _Atomic int64_t count;                   /* may exceed the capacity; additional pages are in a newer block */
    _Atomic uintptr_t pages[PAGES_IN_BLOCK]; /* 0: the entry has not been written yet */
};

struct block {
    stki_guard slots[SLOTS];
    struct block *_Atomic next;
};

static struct block first_block;

static stki_mutex lock = {PTHREAD_MUTEX_INITIALIZER};
static stki_guard *free_slots;                  /* guarded by lock: slots that can be reused */
static struct block *last_block = &first_block; /* guarded by lock */
static int last_used;                           /* guarded by lock: used slots of the last block */

static const struct sigaction by_default = {.sa_handler = SIG_DFL}, ignored = {.sa_handler = SIG_IGN};
static struct sigaction found; /* the action found at the first install; constant afterwards, like page_bytes */
static const struct sigaction *_Atomic previous; /* one of the three above; NULL: the handler was never installed */
static uintptr_t page_bytes;
static _Atomic bool spent; /* `found` has SA_RESETHAND and has been called */

/* ---- the handler ---- */

static stki_guard *slot_of(uintptr_t address)
{
    for (struct block *block = &first_block; block; block = atomic_load_explicit(&block->next, memory_order_acquire))
        for (int i = 0; i < SLOTS; i++) {
            stki_guard *slot = &block->slots[i];
            uint64_t before = atomic_load_explicit(&slot->sequence, memory_order_acquire);
            uintptr_t start = atomic_load_explicit(&slot->start, memory_order_acquire);
            uintptr_t end = atomic_load_explicit(&slot->end, memory_order_acquire);

            if (address >= start && address < end && !(before & 1) &&
                atomic_load_explicit(&slot->sequence, memory_order_relaxed) == before)
                return slot;
        }
    return NULL;
}

/* Uses a direct system call, because interposed mmap functions (of sanitizers or profilers) are not
 * async-signal-safe. */
static bool zeros_from(uintptr_t from, uintptr_t end)
{
#ifdef SYS_mmap
    return syscall(SYS_mmap, from, end - from, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == (long)from;
#else
    void *at = (void *)from; /* NOLINT(performance-no-int-to-ptr) */

    return mmap(at, end - from, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at;
#endif
}

static struct bad_pages *new_block(void)
{
#ifdef SYS_mmap
    const long at =
        syscall(SYS_mmap, 0, sizeof(struct bad_pages), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return at < 0 && at > -4096 ? NULL : (struct bad_pages *)at; /* NOLINT(performance-no-int-to-ptr) */
#else
    void *at = mmap(NULL, sizeof(struct bad_pages), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return at == MAP_FAILED ? NULL : at;
#endif
}

/* Adds the page to the slot's list. Returns false if out of memory. */
static bool enter_page(stki_guard *slot, uintptr_t page)
{
    for (;;) {
        struct bad_pages *block = atomic_load_explicit(&slot->pages, memory_order_acquire), *made;
        const int64_t at = block ? atomic_fetch_add_explicit(&block->count, 1, memory_order_acq_rel) : PAGES_IN_BLOCK;

        if (at < PAGES_IN_BLOCK) {
            atomic_store_explicit(&block->pages[at], page, memory_order_release);
            return true;
        }
        made = new_block();
        if (!made)
            return false;
        made->next = block;
        if (!atomic_compare_exchange_strong_explicit(&slot->pages, &block, made, memory_order_acq_rel,
                                                     memory_order_relaxed))
            (void)munmap(made, sizeof *made);
    }
}

static void mark(stki_guard *slot, enum broken broken)
{
    int now = atomic_load_explicit(&slot->broken, memory_order_relaxed);

    while (now < (int)broken && !atomic_compare_exchange_weak_explicit(&slot->broken, &now, (int)broken,
                                                                       memory_order_acq_rel, memory_order_relaxed))
        ;
}

static bool repair(const siginfo_t *info)
{
    uintptr_t address = (uintptr_t)info->si_addr, page = address & ~(page_bytes - 1);
    stki_guard *slot;

    if (info->si_code != BUS_ADRERR && info->si_code != BUS_OBJERR && info->si_code != BUS_MCEERR_AR)
        return false;
    slot = slot_of(address);
    if (!slot)
        return false;
    if (enter_page(slot, page)) {
        mark(slot, SOME_PAGES);
        if (zeros_from(page, page + page_bytes))
            return true;
    }
    /* The limit on mappings was reached, or pages are larger than page_bytes: replace the rest of the mapping, or all
     * of it. */
    mark(slot, REST);
    return zeros_from(page, slot->end) || zeros_from(slot->start, slot->end);
}

/* Restores the default action. A faulting instruction faults again when the handler returns, which gives a debugger the
 * full context. A signal that was sent by a process must be raised again. */
static void end_process(const siginfo_t *info)
{
    sigaction(SIGBUS, &by_default, NULL);
    if (info->si_code <= 0 || info->si_code == BUS_MCEERR_AO)
        raise(SIGBUS);
}

/* Performs the previous action. Like the kernel, does not ignore faults. */
static void pass_on(const struct sigaction *to, int number, siginfo_t *info, void *context)
{
    if ((to->sa_flags & (int)SA_RESETHAND) && atomic_exchange_explicit(&spent, true, memory_order_acq_rel))
        to = &by_default;
    if (to->sa_flags & SA_SIGINFO)
        to->sa_sigaction(number, info, context);
    else if (to->sa_handler == SIG_DFL || (to->sa_handler == SIG_IGN && info->si_code > 0))
        end_process(info);
    else if (to->sa_handler != SIG_IGN)
        to->sa_handler(number);
}

static void on_bus(int number, siginfo_t *info, void *context)
{
    int error_number = errno;
    const struct sigaction *to =
        atomic_load_explicit(&previous, memory_order_acquire); /* pairs with the release in install() */

    if (!repair(info))
        pass_on(to, number, info, context);
    errno = error_number;
}

/* ---- the table ---- */

static void lock_table(void)
{
    stki_lock(&lock);
}

static void unlock_table(void)
{
    stki_unlock(&lock);
}

static bool is_plain(const struct sigaction *action, void (*handler)(int))
{
    return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == handler;
}

static void watch_forks(void)
{
    (void)pthread_atfork(lock_table, unlock_table,
                         unlock_table); /* ensures that a child process has a consistent table and a free lock */
}

void stki_guard_watch_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, watch_forks);
}

/* Installs the handler at first use, and again if SIG_DFL or SIG_IGN has been restored since; another handler is left
 * in place, since it may call this one. Uses the flags and mask of the previous action, because this handler may call
 * it. */
static void install(void)
{
    struct sigaction ours = {.sa_sigaction = on_bus}, now;
    const struct sigaction *before = &found;

    sigaction(SIGBUS, NULL, &now);
    if (!atomic_load_explicit(&previous, memory_order_relaxed)) {
        page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
        found = now;
    } else if (is_plain(&now, SIG_DFL)) {
        before = &by_default;
    } else if (is_plain(&now, SIG_IGN)) {
        before = &ignored;
    } else {
        return;
    }
    atomic_store_explicit(&previous, before, memory_order_release);
    ours.sa_mask = before->sa_mask;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (before->sa_flags & (int)(SA_NODEFER | SA_RESTART));
    sigaction(SIGBUS, &ours, NULL);
}

static stki_guard *take_slot(void)
{
    stki_guard *slot = free_slots;
    struct block *block;

    if (slot) {
        free_slots = slot->next_free;
        return slot;
    }
    if (last_used == SLOTS) { /* blocks are never freed, because the handler may read them */
        block = mmap(NULL, sizeof *block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (block == MAP_FAILED)
            return NULL;
        atomic_store_explicit(&last_block->next, block, memory_order_release);
        last_block = block;
        last_used = 0;
    }
    return &last_block->slots[last_used++];
}

static void write_slot(stki_guard *slot, uintptr_t start, uintptr_t end)
{
    uint64_t sequence = atomic_load_explicit(&slot->sequence, memory_order_relaxed);

    atomic_store_explicit(&slot->sequence, sequence + 1, memory_order_relaxed);
    atomic_store_explicit(&slot->start, start, memory_order_release);
    atomic_store_explicit(&slot->end, end, memory_order_release);
    atomic_store_explicit(&slot->broken, WHOLE, memory_order_relaxed);
    atomic_store_explicit(&slot->sequence, sequence + 2, memory_order_release);
}

stki_guard *stki_guard_add(const void *start, int64_t bytes)
{
    stki_guard *slot;

    stki_guard_watch_forks();
    stki_lock(&lock);
    install();
    slot = take_slot();
    if (slot)
        write_slot(slot, (uintptr_t)start, ((uintptr_t)start + (uintptr_t)bytes + page_bytes - 1) & ~(page_bytes - 1));
    stki_unlock(&lock);
    return slot;
}

void stki_guard_remove(stki_guard *slot)
{
    if (!slot)
        return;
    stki_lock(&lock);
    write_slot(slot, 0, 0);
    for (struct bad_pages *block = atomic_exchange(&slot->pages, NULL), *next; block; block = next) {
        next = block->next;
        (void)munmap(block, sizeof *block);
    }
    slot->next_free = free_slots;
    free_slots = slot;
    stki_unlock(&lock);
}

bool stki_guard_broken(const stki_guard *slot)
{
    return slot && atomic_load_explicit(&slot->broken, memory_order_acquire) != WHOLE;
}

bool stki_guard_bad(const stki_guard *slot, const void *start, int64_t bytes)
{
    const uintptr_t from = (uintptr_t)start & ~(page_bytes - 1), end = (uintptr_t)start + (uintptr_t)bytes;
    const int broken = slot ? atomic_load_explicit(&slot->broken, memory_order_acquire) : WHOLE;
    const struct bad_pages *block;

    if (broken != SOME_PAGES)
        return broken == REST;
    for (block = atomic_load_explicit(&slot->pages, memory_order_acquire); block; block = block->next) {
        const int64_t count = atomic_load_explicit(&block->count, memory_order_acquire);

        for (int64_t i = 0; i < count && i < PAGES_IN_BLOCK; i++) {
            const uintptr_t page = atomic_load_explicit(&block->pages[i], memory_order_acquire);

            if (page >= from && page < end)
                return true;
        }
    }
    return false;
}
