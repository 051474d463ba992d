#include <errno.h>
#include <hopwise.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program if something is not as it should be. */
static void claim(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "not so: %s; the last error: %s (%s)\n", what, hopwise_error(), strerror(errno));
    exit(1);
}
