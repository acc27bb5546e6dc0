/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * class_members.h -- the tensors of a model, from its class and configuration
 *
 *	static void visit(void *arg, const struct class_member *m);
 *
 *	class_members(c, visit, arg);
 *
 * Import checks that a checkpoint has them, export that a tree has them.
 */
#ifndef IMPORT_CLASS_MEMBERS_H
#define IMPORT_CLASS_MEMBERS_H
#include <stdbool.h>
#include <stddef.h>
#include "model/config.h"

struct class_member {
	const char *group, *member;	/* of the tree: "/model/norm", "weight" */
	const char *from;		/* of a linear layer in a block: the group of the checkpoint with */
					/* its rows, as a path of the tree; else NULL */
	size_t rows, columns;		/* [rows, columns], transposed if the checkpoint is; or [rows] */
	bool patches;			/* a checkpoint may store it as a convolution */
	bool wanted;			/* false: a bias that the class does not have */
};

/* Calls visit() with each member, which is valid until visit() returns. */
void class_members(const struct config *c, void (*visit)(void *arg, const struct class_member *m), void *arg);
#endif
