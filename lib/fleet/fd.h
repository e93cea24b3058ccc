/* fd.h - descriptors that are not standard input, output or error.
 *
 * A program may have closed 0, 1 or 2 on purpose. A socket that gets such a number would receive output meant for the
 * terminal, and send it to Redis. */
#ifndef FLEET_FD_H
#define FLEET_FD_H

/* Returns the same open file at a number above 2: fd itself, or a close-on-exec duplicate, and fd is closed. Returns -1
 * with errno set if fd is -1 or no number is left. */
int fleet_fd_above_stdio(int fd);

#endif
