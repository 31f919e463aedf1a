// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether a prototype of ours calls as the vendor's does.
#ifndef HYPERPARALLEL_TEST_RUNTIME_VENDOR_ALIKE_H
#define HYPERPARALLEL_TEST_RUNTIME_VENDOR_ALIKE_H

#include <type_traits>

// An enumeration is as wide as the number that we pass for it, and a handle is
// a pointer; so types are alike if sizes and kinds are.
template <typename Left, typename Right>
constexpr bool alike =
    sizeof(Left) == sizeof(Right) &&
    std::is_pointer_v<Left> == std::is_pointer_v<Right> &&
    std::is_floating_point_v<Left> == std::is_floating_point_v<Right>;

template <typename Left, typename Right>
struct SameCall : std::false_type {};
template <typename Result, typename... Left, typename Status, typename... Right>
struct SameCall<Result (*)(Left...), Status (*)(Right...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(Left) == sizeof...(Right))
      return alike<Result, Status> && (alike<Left, Right> && ... && true);
    else
      return false;
  }();
};

/// Argument by argument, and the result.
template <typename Left, typename Right>
constexpr bool Same = SameCall<Left, Right>::value;

#endif // HYPERPARALLEL_TEST_RUNTIME_VENDOR_ALIKE_H
