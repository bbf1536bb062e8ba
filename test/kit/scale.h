/* scale: how many repetitions a test makes, fewer under a sanitizer. */
#ifndef TEST_KIT_SCALE_H
#define TEST_KIT_SCALE_H

/* The sanitizers make everything several times slower. */
#if defined(__SANITIZE_ADDRESS__)
#define SCALE(normal, sanitized) (sanitized)
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SCALE(normal, sanitized) (sanitized)
#endif
#endif
#ifndef SCALE
#define SCALE(normal, sanitized) (normal)
#endif

#endif
