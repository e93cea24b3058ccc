/* problem.h - fills a struct bide_problem for libbide-fleet. */
#ifndef FLEET_PROBLEM_H
#define FLEET_PROBLEM_H

#include <bide/base.h>

/* Sets a problem that is not the value of a field, cut to size. system_errno is 0 if the operating system did not
 * refuse. Returns err. Accepts a NULL problem. */
__attribute__((format(printf, 4, 5))) enum bide_err fleet_problem_set(struct bide_problem *problem, enum bide_err err,
                                                                      int system_errno, const char *format, ...);

#endif
