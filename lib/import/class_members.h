/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * class_members.h -- the tensors that a model of a class has, by its configuration
 *
 *	static void visit(void *arg, const struct class_member *m);
 *
 *	class_members(c, visit, arg);
 *
 * Import asks whether a checkpoint has them, export whether a tree does.
 */
#ifndef IMPORT_CLASS_MEMBERS_H
#define IMPORT_CLASS_MEMBERS_H
#include <stdbool.h>
#include <stddef.h>
#include "model/config.h"

struct class_member {
	const char *group, *member;	/* of the tree: "/model/norm", "weight" */
	const char *from;		/* of a linear layer in a block: the group of the checkpoint, as a */
					/* path of the tree, that holds its rows; else NULL */
	size_t rows, columns;		/* [rows, columns], transposed where the checkpoint is; or [rows] */
	bool patches;			/* a checkpoint may keep it as a convolution */
	bool wanted;			/* false: a bias that the class does not have */
};

/* Calls visit() with each; what it is given is valid until it returns. */
void class_members(const struct config *c, void (*visit)(void *arg, const struct class_member *m), void *arg);
#endif
