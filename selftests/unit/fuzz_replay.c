// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gives all files of a directory to the fuzz target, without libFuzzer: the
 * lines that a corpus executes. Usage: fuzz_replay DIRECTORY
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include "unit.h"

enum { MOST_BYTES = 1 << 16 };

int LLVMFuzzerTestOneInput(const __u8 *data, size_t size);

static void replay(const char *directory, const char *name)
{
	__u8 *data = malloc(MOST_BYTES);
	char path[4096];
	size_t size;
	FILE *file;

	snprintf(path, sizeof(path), "%.2000s/%.1000s", directory, name);
	file = fopen(path, "rb");
	if (!data || !file) {
		perror(path);
		exit(EXIT_FAILURE);
	}
	size = fread(data, 1, MOST_BYTES, file);
	fclose(file);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
}

int main(int argc, char **argv)
{
	struct dirent *entry;
	DIR *dir;
	int nr = 0;

	dir = argc == 2 ? opendir(argv[1]) : NULL;
	if (!dir) {
		fprintf(stderr, "usage: fuzz_replay DIRECTORY\n");
		return EXIT_FAILURE;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		replay(argv[1], entry->d_name);
		nr++;
	}
	closedir(dir);
	printf("%d inputs\n", nr);
	return EXIT_SUCCESS;
}
