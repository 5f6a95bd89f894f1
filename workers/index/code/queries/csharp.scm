(invocation_expression function: [(identifier) (member_access_expression) (generic_name)] @call)
(invocation_expression function: (conditional_access_expression (member_binding_expression name: (_) @call)))
(object_creation_expression type: (_) @call)
(attribute name: (_) @call)
(argument (identifier) @value)
(base_list [(identifier) (qualified_name) (generic_name)] @base)
(parameter type: (_) @type)
(parameter type: (_) @as name: (identifier) @name)
(variable_declaration type: (_) @type)
(variable_declaration type: [(identifier) (qualified_name) (generic_name) (nullable_type)] @as (variable_declarator name: (identifier) @name))
(variable_declaration type: (implicit_type) (variable_declarator name: (identifier) @name [(object_creation_expression) (invocation_expression)] @from))
(property_declaration type: (_) @as name: (identifier) @field)
(method_declaration returns: (_) @returns)
[(using_directive) (namespace_declaration) (file_scoped_namespace_declaration)] @import
[(class_declaration) (interface_declaration) (struct_declaration) (record_declaration) (enum_declaration)] @definition
[(delegate_declaration) (constructor_declaration) (method_declaration) (local_function_statement)] @definition
(attribute_list) @decorator
