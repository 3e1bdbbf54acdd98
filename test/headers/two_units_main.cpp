// An inline function is one function in both units.
const void* quipu_address_in_unit_1();
const void* quipu_address_in_unit_2();

int main() { return quipu_address_in_unit_1() == quipu_address_in_unit_2() ? 0 : 1; }
