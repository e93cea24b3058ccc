/* fd.h - descriptors that are nobody's standard input or output.
 *
 * A program may have closed 0, 1 or 2 on purpose. A socket there would get what somebody else prints: into a connection
 * to Redis. */
#ifndef FLEET_FD_H
#define FLEET_FD_H

/* The same file at a number above 2, closed on exec; the given one is closed if it was another. -1 stays -1, and errno;
 * it also comes if there is no number left. */
int fleet_fd_above_stdio(int fd);

#endif
