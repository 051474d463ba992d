/* A plugin for QEMU's user mode that counts the instructions of a program, and prints them at its end.
 *
 * Debian ships no header for plugins. These are the parts of their interface that are used here. Its version is 1 in
 * QEMU 7, and 2 is the least that QEMU 9 takes: cc -DINTERFACE=2. */

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#ifndef INTERFACE
#define INTERFACE 1
#endif

typedef uint64_t plugin_id;
struct qemu_plugin_tb;

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *), int, void *);
void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void *), void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
void qemu_plugin_outs(const char *);

int qemu_plugin_version = INTERFACE;

static uint64_t instructions;

/* A block runs to its end, or the program ends with a signal. */
static void on_run(unsigned cpu, void *of_block)
{
    (void)cpu;
    instructions += (uintptr_t)of_block;
}

static void on_translated(plugin_id id, struct qemu_plugin_tb *block)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_cb(block, on_run, 0, (void *)(uintptr_t)qemu_plugin_tb_n_insns(block));
}

static void at_end(plugin_id id, void *none)
{
    char line[40];
    (void)id, (void)none;
    snprintf(line, sizeof line, "instructions %" PRIu64 "\n", instructions);
    qemu_plugin_outs(line);
}

int qemu_plugin_install(plugin_id id, const void *about, int count, char **words)
{
    (void)about, (void)count, (void)words;
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
    qemu_plugin_register_atexit_cb(id, at_end, NULL);
    return 0;
}
