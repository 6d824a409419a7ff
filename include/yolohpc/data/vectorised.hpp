// YOLOHPC_VECTOR_CLONES: compiles a plain loop for several instruction sets; the program picks one
// at start.
//
// The results do not depend on the pick: the build forbids fused multiply-add, and the loops marked
// so hold no sums whose order could change.
#pragma once

// Thread sanitizer starts after the resolvers of cloned functions run, and crashes in them.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define YOLOHPC_VECTOR_CLONES \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define YOLOHPC_VECTOR_CLONES
#endif
