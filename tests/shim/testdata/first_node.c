/* SPDX-License-Identifier: Apache-2.0 */
/* Ends with 0 if the second argument is the first node of the list that is the first one, else with 1. */
#include "plugin/events.h"

int main(int argc, char **argv) { return argc == 3 && is_first_node(argv[1], argv[2]) ? 0 : 1; }
